"""Sentences for training and testing vocabularies."""

import gzip
import json
from functools import cache
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from transformer.data.sources import SAMPLES
from transformer.data.text import one_line


@cache
def sample_sentences(rows: int = 300) -> tuple[str, ...]:
    """German and English sentences of the sample corpus."""
    return tuple(sentence for row in sample_rows("translation", rows) for sentence in (row["de"], row["en"]))


def sample_rows(task: str, rows: int, split: str = "train") -> list[dict[str, str]]:
    """The first rows of a sample corpus."""
    with gzip.open(SAMPLES / task / f"{split}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in islice(stream, rows)]


def imdb(root: Path, split: str, rows: int) -> list[str]:
    """Reviews spread over a split."""
    texts = pq.read_table(root / "imdb" / "plain_text" / f"{split}-00000-of-00001.parquet", columns=["text"])["text"]
    step = len(texts) // rows
    return [one_line(texts[row * step].as_py()) for row in range(rows)]
