"""download: writes texts, one per row, without evaluation texts of another task."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import NO_INPUT, UNSUPERVISED, Task
from transformer.core.validation import StageParams
from transformer.data.corpus import Corpus, Row, clean_text
from transformer.data.document import read_document
from transformer.data.select import Selection
from transformer.data.sources import Download, open_corpus


class TextDownload(Download):
    """Source of the texts."""

    source: Literal["sample", "files", "hub", "document"]  # type: ignore[assignment]  # one more than other tasks
    """`sample`: the folder `samples`; `files`: the folder `path`; `hub`: `repository` on the Hugging Face Hub;
    `document`: the files `*.txt` in `path` as one text, whose end is validation and test, with ⏎ for line breaks."""
    unsupervised: bool
    """Add the corpus's split `unsupervised` to the training texts."""
    held_out: str = Field(min_length=1)
    """Corpus folder of another task. Training texts that equal, or nearly equal, one of its validation or test texts
    are dropped and counted; data/local/none for no such task."""


class Params(StageParams):
    """The stage's parameters."""

    download: TextDownload


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the corpus to `paths.corpus`. Returns the rows per split. Raises UserError."""
    section = params.download
    with _opened(task, params, paths) as corpus:
        joined = _joined(corpus, unsupervised=section.unsupervised)
        mixed = section.unsupervised and not joined.added
        own = [split for split in joined.splits if mixed and split != "train"]
        selection = Selection(joined, section, judged=judged(Path(section.held_out)), own=own)
        return selection.write(
            paths.corpus, lambda split: checked, label=lambda row: None, text=lambda row: row["text"], observer=observer
        )


def _opened(task: Task, params: Params, paths: Paths) -> AbstractContextManager[Corpus]:
    section = params.download
    if section.source == "document":
        shares = {"validation_fraction": section.validation_fraction, "test_fraction": section.test_fraction}
        return nullcontext(read_document(Path(section.path), **shares))
    return open_corpus(section, task, columns=("text",), output=paths.corpus, progress=params.runtime.progress)


def _joined(corpus: Corpus, *, unsupervised: bool) -> Corpus:
    """Add the unlabelled texts to train, or drop them; none may equal a validation or test text."""
    corpus.require(("train", *((UNSUPERVISED,) if unsupervised else ())))
    splits = {split: [*parts] for split, parts in corpus.splits.items() if split != UNSUPERVISED}
    if unsupervised and {"validation", "test"} <= splits.keys():
        return replace(corpus, splits=splits, added=corpus.splits[UNSUPERVISED])
    if unsupervised:  # splits sampled from them are compared with the rest
        splits["train"] += corpus.splits[UNSUPERVISED]
    return replace(corpus, splits=splits)


def checked(row: Row) -> Row:
    """Return a row's cleaned text. Raises ValueError if it is missing, empty or not a string."""
    return {"text": clean_text(row, "text")}


def judged(corpus: Path) -> list[Callable[[], Iterator[Row]]]:
    """Return readers of a corpus's validation and test texts, as rows. Raises UserError if it has neither split."""
    if corpus.resolve() == NO_INPUT.resolve():
        return []
    paths = sorted(path for name in ("validation", "test") for path in corpus.glob(f"{name}*.jsonl"))
    if not paths:
        raise UserError(
            f"{corpus} has no validation or test split: run the download of its task first, or set held_out to"
            f" {NO_INPUT.as_posix()}"
        )
    return [partial(_texts, path) for path in paths]


def _texts(path: Path) -> Iterator[Row]:
    """Yield the column `text` of each row, or each of its text columns, as in a translation corpus."""
    for row in read_rows(path):
        found = [row["text"]] if "text" in row else [value for value in row.values() if isinstance(value, str)]
        yield from ({"text": text} for text in found)
