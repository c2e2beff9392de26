"""download: writes texts, one per row, none of which another task is judged by."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import NOWHERE, UNSUPERVISED, Task
from transformer.corpora.corpus import Corpus, Row, clean_text
from transformer.corpora.output import beside
from transformer.corpora.select import Selection
from transformer.corpora.sources import Download, open_corpus


class TextDownload(Download):
    """Where the texts come from."""

    unsupervised: bool
    """Add the corpus's split `unsupervised` to the training texts."""
    held_out: str = Field(min_length=1)
    """A folder with the corpus of another task. Training texts that equal, or nearly equal, one of its validation and
    test splits are left out and counted; data/local/none leaves out nothing."""


class Params(StageParams):
    """The stage's parameters."""

    download: TextDownload


def run(task: Task, params: Params, *, output: Path, observer: Observer) -> dict[str, float]:
    """Write the corpus into the folder `output`; returns the rows per split. Raises UserError."""
    section = params.download
    with open_corpus(
        section,
        task,
        columns=("text",),
        scratch=beside(output, "hub"),
        progress=params.runtime.progress,
    ) as corpus:
        joined = _joined(corpus, unsupervised=section.unsupervised)
        mixed = section.unsupervised and not joined.added
        own = [split for split in joined.splits if mixed and split != "train"]
        selection = Selection(joined, section, judged=judged(Path(section.held_out)), own=own)
        return selection.write(
            output, lambda split: checked, label=lambda row: None, text=lambda row: row["text"], observer=observer
        )


def _joined(corpus: Corpus, *, unsupervised: bool) -> Corpus:
    """The corpus with its unlabelled texts in train, or without; none may equal its validation and test."""
    corpus.require(("train", *((UNSUPERVISED,) if unsupervised else ())))
    splits = {split: [*parts] for split, parts in corpus.splits.items() if split != UNSUPERVISED}
    if unsupervised and {"validation", "test"} <= splits.keys():
        return replace(corpus, splits=splits, added=corpus.splits[UNSUPERVISED])
    if unsupervised:  # what is held out of them is compared with the rest
        splits["train"] += corpus.splits[UNSUPERVISED]
    return replace(corpus, splits=splits)


def checked(row: Row) -> Row:
    """A row's cleaned text. Raises ValueError when it is missing, empty or not a string."""
    return {"text": clean_text(row, "text")}


def judged(corpus: Path) -> list[Callable[[], Iterator[Row]]]:
    """The texts of a corpus's validation and test splits, as rows. Raises UserError if it has none of them."""
    if corpus.resolve() == NOWHERE.resolve():
        return []
    paths = sorted(path for name in ("validation", "test") for path in corpus.glob(f"{name}*.jsonl"))
    if not paths:
        raise UserError(
            f"{corpus} has no validation or test split: run the download of its task first, or set held_out to"
            f" {NOWHERE.as_posix()}"
        )
    return [partial(_texts, path) for path in paths]


def _texts(path: Path) -> Iterator[Row]:
    """The column `text` of each row, or each column that is one, as of a translation corpus."""
    for row in read_rows(path):
        found = [row["text"]] if "text" in row else [value for value in row.values() if isinstance(value, str)]
        yield from ({"text": text} for text in found)
