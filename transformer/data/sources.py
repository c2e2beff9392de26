"""The corpus parameters that all tasks share, and the corpus that they name, from any source.

A family adds its own parameters in its `download.py`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.task import NO_INPUT, Task
from transformer.core.validation import Section
from transformer.data.corpus import Corpus, Fault, Part, Row, scratch_folder
from transformer.data.files import Quotes, read_folder
from transformer.data.hub import read_hub
from transformer.data.layouts import Columns

SAMPLES = Path(__file__).parents[2] / "samples"


class SampleRows(Section):
    """Number of rows to take of each split of the sample corpus."""

    train: int = Field(ge=1)
    """The first rows of the training split."""
    validation: int = Field(ge=1)
    """The first rows of the validation split."""
    test: int = Field(ge=1)
    """The first rows of the test split."""


class Download(Section):
    """Where a corpus comes from."""

    source: Literal["sample", "files", "hub"]
    """`sample`: the folder `samples`; `files`: the folder `path`; `hub`: `repository` on the Hugging Face Hub."""
    path: str = Field(min_length=1)
    """The folder of the source `files`."""
    repository: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[\w.-]+)?$")
    """The dataset's name on the Hub."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The dataset's commit: unlike a branch or a tag it cannot move."""
    configuration: str | None = Field(min_length=1)
    """The dataset's configuration ("subset" on the Hub's pages); null for its only or default one."""
    sample_rows: SampleRows
    seed: int = Field(ge=0)
    """Seeds the choice of the validation and test rows where they are held out from train."""
    expected_sha256: str | None = Field(pattern=r"^[0-9a-f]{64}$")
    """The `content_sha256` required in provenance.json; null for no check."""
    columns: dict[str, str]
    """The corpus's names for columns that it calls otherwise, such as `{text: review}`; `a.b`: b in the mapping a."""
    quotes: Quotes
    """Quotation marks in tables of the source `files`: `none`, they are text; `csv`, they may enclose a field, those in
    it doubled."""
    bad_rows: Literal["stop", "skip"]
    """A row that cannot be used ends the stage, or is left out and counted in provenance.json."""
    max_words: int | None = Field(ge=1)
    """Leaves out training rows with more words (between white space) in any column; null for no limit."""
    deduplicate: bool
    """Leaves out training rows that repeat an earlier one; takes some 100 bytes of memory per row."""
    validation_fraction: float = Field(gt=0, lt=1)
    """The fraction of the training rows (of each label) to hold out if the source has no validation split."""
    test_fraction: float = Field(gt=0, lt=1)
    """Fraction to hold out for a test split, which is held out first."""
    validation_block: int = Field(ge=1)
    """Hold out training rows in blocks of this many neighbours. 1: by text, so identical texts stay together."""
    near_duplicates: Literal["keep", "leave_out"]
    """Action on training rows that nearly equal a row held out of them, as `evaluate` measures it: half of the word
    trigrams that either of the two has in common."""


class AddingDownload(Download):
    """Where a corpus comes from, and what is added to its training rows."""

    added: str = Field(min_length=1)
    """A folder with a file `train` of rows to add to train, such as sentences with a model's translations, its columns
    named as ours. Rows that equal or nearly equal one of validation or test are left out; data/local/none adds none."""


@contextmanager
def open_corpus(
    section: Download, task: Task, *, columns: Sequence[str], output: Path, progress: bool, added: Path = NO_INPUT
) -> Iterator[Corpus]:
    """Open the corpus of a task for reading inside a `with` block.

    columns: the columns of a row, by our names; output: where it will be written, beside which temporary files lie;
    progress: show progress bars; added: a folder with further training rows. Raises UserError when the source cannot
    be read.
    """
    if unknown := section.columns.keys() - {*columns}:
        raise UserError(f"`columns` names {min(unknown)}, which no row has: choose from {', '.join(columns)}")
    named = Columns({column: section.columns.get(column, column) for column in columns})
    with scratch_folder(output, "hub") if section.source == "hub" else nullcontext(output) as scratch:
        if section.source == "files":
            corpus = read_folder(Path(section.path), columns=named, quotes=section.quotes)
        elif section.source == "hub":
            corpus = read_hub(
                section.repository,
                revision=section.revision,
                configuration=section.configuration,
                columns=named,
                scratch=scratch,
                progress=progress,
            )
        else:
            corpus = _sample_corpus(task, section.sample_rows)
        yield corpus if added.resolve() == NO_INPUT.resolve() else _joined(corpus, added, columns, section.quotes)


def _joined(corpus: Corpus, folder: Path, columns: Sequence[str], quotes: Quotes) -> Corpus:
    try:
        further = read_folder(folder, columns=Columns({column: column for column in columns}), quotes=quotes)
    except UserError as error:
        raise UserError(f"the rows to add (`added`) cannot be read: {error}") from error
    if [*further.splits] != ["train"]:
        raise UserError(
            f"{folder} has the splits {', '.join(further.splits)}, but rows to add (`added`) are training rows: leave"
            " only `train` in it"
        )
    ignored = [*corpus.ignored, *(str(folder / name) for name in further.ignored)]
    files = {"files": further.origin["files"]["train"]}
    return replace(corpus, added=further.splits["train"], origin={**corpus.origin, "added": files}, ignored=ignored)


def _sample_corpus(task: Task, counts: SampleRows) -> Corpus:
    """Return the first rows of the splits in `samples/TASK`."""
    splits = {}
    for split, parts in _sample(task).splits.items():
        count = getattr(counts, split)
        splits[split] = [replace(part, read=partial(_first, part, count, f"sample_rows.{split}")) for part in parts]
    return Corpus(name="the sample corpus", splits=splits, origin={"source": "sample"})


def _first(part: Part, count: int, leaf: str) -> Iterator[Row | Fault]:
    rows = part.read()
    for number in range(count):
        if (row := next(rows, None)) is None:
            raise UserError(f"{leaf} is {count:,}, but {part.name} has {number:,} rows: set it to at most that")
        yield row


def sample_columns(task: Task) -> Sequence[str]:
    """Return the columns of the task's sample corpus. Raises UserError if it has none."""
    return [*next(row for row in _sample(task).splits["train"][0].read() if isinstance(row, dict))]


def _sample(task: Task) -> Corpus:
    folder = SAMPLES / task.name
    if not folder.is_dir():
        raise UserError(f"{task.name} has no sample corpus: set {task.name}.download.source to `files` or `hub`")
    return read_folder(folder, columns=Columns({}))
