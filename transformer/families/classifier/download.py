"""download: writes texts, each labelled with the number of its class."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task
from transformer.corpora.corpus import Corpus, Row, checked_rows, clean_text
from transformer.corpora.output import beside, write_corpus
from transformer.corpora.sources import Download, open_corpus, sample_of

UNSUPERVISED = "unsupervised"
UNLABELLED = -1

Reader = Callable[[], Iterator[Row]]


class LabelledDownload(Download):
    """Where the labelled texts come from."""

    validation_fraction: float = Field(gt=0, lt=1)
    """The fraction of each label's training rows to hold out if the source has no validation split."""
    validation_block: int = Field(ge=1)
    """Hold out training rows in blocks of this many neighbours. 1: by text, so identical texts stay together."""
    unsupervised: bool
    """Keep the unlabelled texts."""


class Params(StageParams):
    """The stage's parameters."""

    download: LabelledDownload


def run(task: Task, params: Params, *, output: Path, observer: Observer) -> dict[str, float]:
    """Write the corpus into the folder `output`; returns the rows per split. Raises UserError."""
    section = params.download
    with open_corpus(
        section,
        columns=("label", "text"),
        sample=sample_of(task),
        scratch=beside(output, "hub"),
        progress=params.runtime.progress,
    ) as corpus:
        splits = _splits(corpus, section, task.classes)
        return write_corpus(
            output, splits, origin=corpus.origin, expected_sha256=section.expected_sha256, observer=observer
        )


def _splits(corpus: Corpus, section: LabelledDownload, classes: Sequence[str]) -> dict[str, Iterator[Row]]:
    wanted = (UNSUPERVISED,) if section.unsupervised else ()
    corpus.require(("train", "test", *wanted))
    unlabelled = {str(UNLABELLED): UNLABELLED}
    readers = {
        split: partial(
            checked_rows,
            parts,
            partial(check_labelled, labels=unlabelled if split == UNSUPERVISED else class_labels(classes)),
        )
        for split, parts in corpus.splits.items()
        if split != UNSUPERVISED or section.unsupervised
    }
    splits = {split: read() for split, read in readers.items()}
    if "validation" not in splits:
        splits["train"], splits["validation"] = hold_out(
            readers["train"],
            fraction=section.validation_fraction,
            block=section.validation_block,
            seed=section.seed,
        )
    return splits


def class_labels(classes: Sequence[str]) -> dict[str, int]:
    """Class numbers by label as a corpus may write it: number or name, or only the name if names are numbers."""
    names = {name: number for number, name in enumerate(classes)}
    numbers = {str(number): number for number in range(len(classes))}
    return names if any(name.isdecimal() for name in classes) else numbers | names


def check_labelled(row: Row, *, labels: Mapping[str, int]) -> Row:
    """A row's label, as a number, and its cleaned text. labels: class numbers by label as a corpus may write it.

    Raises ValueError when the text is missing, empty or not a string, or the label is not in `labels`.
    """
    found = row.get("label")
    if str(found) not in labels:  # as text, because 1.0 and True equal 1
        raise ValueError(f"the label must be {_in_words(labels)}, not {found!r}")
    return {"label": labels[str(found)], "text": clean_text(row, "text")}


def _in_words(labels: Mapping[str, int]) -> str:
    written: dict[int, list[str]] = {}
    for text, number in labels.items():
        written.setdefault(number, []).append(text)
    return " or ".join(" ".join((first, *(f"({name})" for name in others))) for first, *others in written.values())


def hold_out(read: Reader, *, fraction: float, block: int, seed: int) -> tuple[Iterator[Row], Iterator[Row]]:
    """Split the rows `{"label": int, "text": str}` that `read` streams into (train, validation), keeping their order.

    Per label, the rows with the smallest keys are held out, a key being a hash of the seed and the text: identical
    texts of a label stay together, so that none is in both splits. With a `block` above 1 the number of the row's
    block is hashed instead: if the source lists the texts about one thing one after the other, as IMDB does for films,
    nearly all of them go to one side, and validation is as new to the model as a test.
    It takes eight bytes per row. Raises UserError when either side would have no row of some label.
    """

    def keyed() -> Iterator[tuple[int, Row]]:
        return ((_key(row["text"] if block == 1 else number // block, seed), row) for number, row in enumerate(read()))

    bounds = _bounds(keyed(), fraction=fraction)

    def select(*, held_out: bool) -> Iterator[Row]:
        return (row for key, row in keyed() if (key < bounds[row["label"]]) is held_out)

    return select(held_out=False), select(held_out=True)


def _key(group: str | int, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\t{group}".encode()).digest()[:8])


def _bounds(keyed: Iterator[tuple[int, Row]], *, fraction: float) -> dict[int, int]:
    """By label, the key below which rows are held out."""
    keys: dict[int, array[int]] = defaultdict(lambda: array("Q"))
    for key, row in keyed:
        keys[row["label"]].append(key)
    bounds = {}
    for label, found in keys.items():
        ordered = sorted(found)
        bound = ordered[min(round(len(ordered) * fraction), len(ordered) - 1)]
        if bound == ordered[0]:
            raise UserError(
                f"the {len(ordered)} rows with label {label} are too few or too alike to hold out {fraction} of them: "
                "change `validation_fraction` or `validation_block`, or give the corpus a validation split"
            )
        bounds[label] = bound
    return bounds
