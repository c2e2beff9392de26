"""download: writes texts, each labelled with the number of its class."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task
from transformer.corpora.corpus import Check, Corpus, Row, clean_text
from transformer.corpora.output import beside
from transformer.corpora.select import Selection
from transformer.corpora.sources import Download, open_corpus, sample_of

UNSUPERVISED = "unsupervised"
UNLABELLED = -1


class LabelledDownload(Download):
    """Where the labelled texts come from."""

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
        return Selection(_required(corpus, unsupervised=section.unsupervised), section).write(
            output,
            partial(_check_of, classes=task.classes),
            label=lambda row: row["label"],
            text=lambda row: row["text"],
            observer=observer,
        )


def _required(corpus: Corpus, *, unsupervised: bool) -> Corpus:
    """The corpus without unlabelled texts that are not asked for. Raises UserError if a split is missing."""
    corpus.require(("train", *((UNSUPERVISED,) if unsupervised else ())))
    splits = {split: parts for split, parts in corpus.splits.items() if split != UNSUPERVISED or unsupervised}
    return replace(corpus, splits=splits)


def _check_of(split: str, *, classes: Sequence[str]) -> Check:
    unlabelled = {str(UNLABELLED): UNLABELLED}
    return partial(check_labelled, labels=unlabelled if split == UNSUPERVISED else class_labels(classes))


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
