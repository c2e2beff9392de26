"""The build_vocab stage: a vocabulary a side, the encoded store, and statistics."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.errors import UserError
from transformer.files import read_rows, write_json
from transformer.observer import Observer
from transformer.text.parallel import chunks
from transformer.text.pretokenize import PreTokenizerParams, read_pretokenizers
from transformer.text.store import ColumnWriter, EncodedColumn, write_labels
from transformer.text.vocabulary import Vocabulary
from transformer.text.vocabulary_config import VocabParams
from transformer.text.vocabulary_hub import vocabulary_from_hub
from transformer.text.vocabulary_training import given_wordpiece, train_wordpiece, word_vocabulary

_CHUNK = 2000  # texts that are encoded at a time
_QUANTILES = (0.5, 0.95, 0.99, 1.0)


def build(
    tokens: Path,
    vocab: Path,
    encoded: Path,
    statistics: Path,
    params: VocabParams,
    *,
    labelled: bool,
    observer: Observer,
) -> dict[str, float]:
    """Write `<side>/tokenizer.json` under `vocab`, the store under `encoded`, and the figures to `statistics`.

    Returns the vocabulary sizes. Raises UserError when a given vocabulary or the tokens cannot be read.
    """
    splits = sorted(path.stem for path in tokens.glob("*.jsonl"))
    figures: dict[str, dict[str, int | dict[str, float]]] = {}
    sizes = {}
    for side, pretokenizer in read_pretokenizers(tokens).items():
        observer.say(f"{side}: {params.kind} vocabulary")
        vocabulary = _vocabulary(tokens / "train.jsonl", side, params, pretokenizer)
        sizes[f"{side}_size"] = float(vocabulary.size)
        vocabulary.save(vocab / side / "tokenizer.json")
        figures[side] = {"size": vocabulary.size} | {
            split: _encode_split(tokens, encoded, split, side, vocabulary, observer) for split in splits
        }
    if labelled:
        for split in splits:
            write_labels(encoded / split, (row["label"] for row in read_rows(tokens / f"{split}.jsonl")))
    write_json(statistics, figures)
    return sizes


def _vocabulary(train: Path, side: str, params: VocabParams, pretokenizer: PreTokenizerParams) -> Vocabulary:
    def texts() -> Iterator[str]:
        return (row[side] for row in read_rows(train))

    if params.source != "trained":
        return given_wordpiece(_given(params), lowercase=pretokenizer.lowercase)
    if params.kind == "word":
        return word_vocabulary(texts(), min_frequency=params.min_frequency, max_size=params.max_size)
    return train_wordpiece(
        texts, min_frequency=params.min_frequency, max_size=params.max_size or 0, lowercase=pretokenizer.lowercase
    )


def _given(params: VocabParams) -> Path:
    if params.source == "hub":
        return vocabulary_from_hub(params.repository, params.revision)
    path = Path(params.path)
    path = path / "vocab.txt" if path.is_dir() else path
    if not path.is_file():
        raise UserError(f"no vocabulary at {path}: put a vocab.txt there, or set vocab.source to `hub` or `trained`")
    return path


def _encode_split(
    tokens: Path, encoded: Path, split: str, side: str, vocabulary: Vocabulary, observer: Observer
) -> dict[str, float]:
    unknown = words = 0

    def sequences() -> Iterator[NDArray[np.int64]]:
        nonlocal unknown, words
        rows = read_rows(tokens / f"{split}.jsonl")
        for chunk in chunks(observer.progress(rows, total=None, what=f"encode {split} {side}"), _CHUNK):
            for ids in vocabulary.encode([row[side] for row in chunk]):
                unknown += int((ids == vocabulary.unknown_id).sum())
                words += len(ids) - 2
                yield ids

    ColumnWriter(encoded / split, side, vocabulary.size).write(sequences())
    lengths = EncodedColumn(encoded / split, side).lengths
    rate = round(unknown / max(words, 1), 6)
    return {"unknown_rate": rate, "coverage": round(1 - rate, 6), "tokens": words} | _quantiles(lengths)


def _quantiles(lengths: NDArray[np.int64]) -> dict[str, float]:
    if not len(lengths):
        return {}
    values: Sequence[float] = np.quantile(lengths, _QUANTILES, method="higher").tolist()
    return {f"length_p{round(100 * q)}": value for q, value in zip(_QUANTILES, values, strict=True)}
