"""Sentences for training and testing vocabularies."""

import gzip
import json
from functools import cache
from itertools import islice

from transformer.data.sources import SAMPLES


@cache
def sample_sentences(rows: int = 300) -> tuple[str, ...]:
    """German and English sentences of the sample corpus."""
    return tuple(sentence for row in sample_rows("translation", rows) for sentence in (row["de"], row["en"]))


def sample_rows(task: str, rows: int, split: str = "train") -> list[dict[str, str]]:
    """The first rows of a sample corpus."""
    with gzip.open(SAMPLES / task / f"{split}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in islice(stream, rows)]
