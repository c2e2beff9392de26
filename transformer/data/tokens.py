"""The tokenize stage: run every split of a corpus through its sides' pre-tokenizers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import read_json, read_rows, write_json, write_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, pass_on_labels
from transformer.core.validation import Runtime, StageParams
from transformer.data.tokenization import PRETOKENIZERS, PreTokenizer, PreTokenizerParams
from transformer.data.workers import OrderedMap, chunks, worker_processes

Row = dict[str, Any]
Sides = Mapping[str, tuple[str, PreTokenizerParams]]
"""The corpus column and pre-tokenization of each side (`source`, `target`, `text`)."""

_CHUNK = 1000  # rows per work item
_splitters: dict[str, tuple[str, PreTokenizer]] = {}


def tokenize_corpus(
    corpus: Path, output: Path, sides: Sides, *, runtime: Runtime, observer: Observer
) -> dict[str, float]:
    """Write `<split>.jsonl` for each split of `corpus`, and the parameters of each side as `pretokenizer.json`.

    Other columns, such as a label, pass unchanged. Returns the number of rows per split. Raises UserError for an
    invalid corpus.
    """
    counts: dict[str, float] = {}
    with worker_processes(runtime, initializer=_prepare, arguments=(dict(sides),)) as ordered_map:
        for split, total in read_json(corpus / "provenance.json")["rows"].items():
            tokenized = _tokenized(read_rows(corpus / f"{split}.jsonl"), ordered_map)
            rows = observer.progress(tokenized, total=total, what=f"tokenize {split}")
            counts[f"{split}_rows"] = write_rows(output / f"{split}.jsonl", iter(rows))
    write_json(output / PRETOKENIZERS, {side: params.model_dump() for side, (_, params) in sides.items()})
    return counts


class TextParams(StageParams):
    """Parameters of the stage for corpora with one text a row."""

    tokenize: PreTokenizerParams


def tokenize_texts(task: Task, params: TextParams, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the pre-tokenized corpus of one text a row to `paths.tokens`. Returns the rows per split."""
    sides = {"text": ("text", params.tokenize)}
    counts = tokenize_corpus(paths.corpus, paths.tokens, sides, runtime=params.runtime, observer=observer)
    pass_on_labels(paths.corpus, paths.tokens)
    return counts


def _tokenized(rows: Iterator[Row], ordered_map: OrderedMap) -> Iterator[Row]:
    for chunk in ordered_map(_tokenize_chunk, chunks(rows, _CHUNK)):
        yield from chunk


def _prepare(sides: Sides) -> None:
    _splitters.clear()
    _splitters.update({side: (column, PreTokenizer(params)) for side, (column, params) in sides.items()})


def _tokenize_chunk(rows: list[Row]) -> list[Row]:
    if missing := [column for column, _ in _splitters.values() if column not in rows[0]]:
        found = ", ".join(sorted(rows[0]))
        raise UserError(f"the corpus has no column `{missing[0]}` (it has: {found}): change `tokenize` or `download`")
    split = {side: splitter([row[column] for row in rows]) for side, (column, splitter) in _splitters.items()}
    columns = {column for column, _ in _splitters.values()}
    return [
        {name: value for name, value in row.items() if name not in columns}
        | {side: texts[index] for side, texts in split.items()}
        for index, row in enumerate(rows)
    ]
