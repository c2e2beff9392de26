"""download: writes texts labelled with class numbers."""

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import MOST_CLASSES, UNSUPERVISED, Task, write_labels
from transformer.core.validation import StageParams
from transformer.data.corpus import (
    Check,
    Corpus,
    Fault,
    LeftOut,
    Part,
    Row,
    checked_rows,
    clean_text,
    storable,
)
from transformer.data.select import Selection
from transformer.data.sources import AddingDownload, open_corpus
from transformer.data.text import visible

UNLABELLED = -1
ANY_LANGUAGE = {"language": None}
"""Overrides for `tokenize` when the language of the texts is unknown."""
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


class LabelledDownload(AddingDownload):
    """Source of the labelled texts."""

    unsupervised: bool
    """Keep unlabelled texts, except near-duplicates of validation and test texts."""
    labels: Literal["train"] | list[str] | dict[str, str]
    """The labels as the corpus writes them, in class order, from class 0; with two, the second is the positive class.
    `train` uses the labels found in train, sorted; a mapping such as `{0: negative, 1: positive}` gives them other
    names, and may give several the same one."""

    @field_validator("labels", mode="before")
    @classmethod
    def _as_text(cls, labels: Any) -> Any:
        if labels == "train":
            return labels
        if not isinstance(labels, list | dict):
            raise ValueError(
                f"must be `train`, a list of labels or a mapping of labels to names, not {reprlib.repr(labels)}"
            )
        written = [label_name(label) for label in labels]
        names = [label_name(name) for name in labels.values()] if isinstance(labels, dict) else written
        if None in (*written, *names) or len({*written}) < len(written) or not 2 <= len({*names}) <= MOST_CLASSES:
            shown = f"{len(labels):,}" if len(labels) > MOST_CLASSES else reprlib.repr(labels)
            raise ValueError(f"must be 2 to {MOST_CLASSES} different labels, not {shown}")
        return dict(zip(written, names, strict=True)) if isinstance(labels, dict) else names


class Params(StageParams):
    """The stage's parameters."""

    download: LabelledDownload


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the corpus to `paths.corpus`. Returns the rows per split. Raises UserError."""
    section = params.download
    with open_corpus(
        section,
        task,
        columns=("label", "text"),
        output=paths.corpus,
        progress=params.runtime.progress,
        added=Path(section.added),
    ) as corpus:
        chosen = _with_names(_required(corpus, unsupervised=section.unsupervised))
        names = _names(section, chosen)
        classes = tuple(dict.fromkeys(names.values()))
        labels = {label: classes.index(name) for label, name in names.items()}
        selection = Selection(chosen, section, unlabelled=UNSUPERVISED)

        def finish(folder: Path) -> Mapping[str, Any]:
            if classes != task.classes:
                write_labels(folder, classes)
            return {"labels": _counted(selection, classes)}

        counts = selection.write(
            paths.corpus,
            partial(_check_of, labels=labels),
            label=lambda row: classes[row["label"]] if row["label"] != UNLABELLED else "none",
            text=lambda row: row["text"],
            finish=finish,
            observer=observer,
        )
        for split, found in _counted(selection, classes).items():
            observer.say(f"{split}: " + ", ".join(f"{name} {count:,}" for name, count in found.items()))
    return counts


def _required(corpus: Corpus, *, unsupervised: bool) -> Corpus:
    """Return the corpus, without unlabelled texts unless requested. Raises UserError if a split is missing."""
    corpus.require(("train", *((UNSUPERVISED,) if unsupervised else ())))
    splits = {split: parts for split, parts in corpus.splits.items() if split != UNSUPERVISED or unsupervised}
    return replace(corpus, splits=splits)


def _with_names(corpus: Corpus) -> Corpus:
    """Replace numeric labels by names in the parts that name their numbers, as data sets of the Hub do."""

    def named(parts: Sequence[Part]) -> list[Part]:
        return [replace(part, read=partial(_named_rows, part)) if part.label_names else part for part in parts]

    splits = {split: named(parts) for split, parts in corpus.splits.items()}
    return replace(corpus, splits=splits, added=named(corpus.added))


def _named_rows(part: Part) -> Iterator[Row | Fault]:
    for row in part.read():
        if not isinstance(row, Fault):
            number = row.get("label")
            if isinstance(number, int) and 0 <= number < len(part.label_names):
                row = row | {"label": part.label_names[number]}
        yield row


def _names(section: LabelledDownload, corpus: Corpus) -> Mapping[str, str]:
    """Return the name of each label that a row may have, in class order."""
    if isinstance(section.labels, dict):
        return section.labels
    return {label: label for label in (learned(corpus) if section.labels == "train" else section.labels)}


def _counted(selection: Selection, classes: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the rows per split and label. Raises UserError if they do not allow training or evaluation."""
    rows = {split: found for split, found in selection.labels.items() if split != UNSUPERVISED}
    for split, found in rows.items():
        if strange := sorted({*found} - {*rows["train"]}):
            names = ", ".join(strange)
            raise UserError(f"{split} has rows with the label {names}, and train has none: add some, or take them out")
    if len(rows["train"]) < 2:
        only = next(iter(rows["train"]))
        raise UserError(f"every row of train has the label {only}: a classifier needs rows of at least two")
    return {split: {name: found[name] for name in classes if name in found} for split, found in rows.items()}


def _check_of(split: str, *, labels: Mapping[str, int]) -> Check:
    return _check_unlabelled if split == UNSUPERVISED else partial(check_labelled, labels=labels)


def _check_unlabelled(row: Row) -> Row:
    """Check a row as `check_labelled` does, but with a label that is missing or -1."""
    given = row if label_name(row.get("label")) else row | {"label": UNLABELLED}
    return check_labelled(given, labels={str(UNLABELLED): UNLABELLED})


def check_labelled(row: Row, *, labels: Mapping[str, int]) -> Row:
    """Return a row's class number and cleaned text. labels: class number by label as written in a corpus.

    Raises ValueError if the text is missing, empty or not a string, or the label is not in `labels`.
    """
    found = row.get("label")
    name = label_name(found)
    if name is None or name not in labels:
        raise ValueError(f"the label must be {' or '.join(labels)}, not {found!r} (`labels` may name others)")
    return {"label": labels[name], "text": clean_text(row, "text")}


def label_name(label: Any) -> str | None:
    """Return a label as text, or None for no label (null, NaN or an empty text).

    Whole floats lose their fraction, since a column with missing values turns integers into floats. Labels that look
    the same are the same: they are in NFC, each run of spaces of any kind is one, and what cannot be seen is left out.
    Raises ValueError for a list or a mapping, and for text that cannot be stored.
    """
    if label is None or label != label:  # NaN
        return None
    if isinstance(label, list | dict | bytes):
        raise ValueError(f"`label` must be a text or a number, not {type(label).__name__}")
    text = storable(visible(str(label)), "label")
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text or None


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Sort label names: numbers by value, others alphabetically."""
    found = sorted(names)
    try:
        return tuple(sorted(found, key=float))
    except ValueError:
        return tuple(sorted(found, key=str.casefold))


def learned(corpus: Corpus) -> tuple[str, ...]:
    """Return the distinct labels of train, sorted. Raises UserError unless there are 2 to MOST_CLASSES."""
    names: dict[str, None] = {}
    left_out = LeftOut("skip")  # bad rows are reported when the rows are written
    for row in checked_rows(corpus.splits["train"], lambda row: {"label": label_name(row.get("label"))}, left_out):
        if row["label"] is not None:
            names[row["label"]] = None
        if len(names) > MOST_CLASSES:
            raise UserError(
                f"train has more than {MOST_CLASSES} different labels, such as {', '.join(list(names)[:3])}: name"
                " the column of the labels in `columns`, or join rare ones"
            )
    if len(names) < 2:
        found = f"only the label {next(iter(names))}" if names else "no label"
        bad = f" in the rows that can be read ({left_out.shown[0]})" if left_out.shown else ""
        raise UserError(
            f"train has {found}{bad}: a classifier needs at least two; give it other rows, or another column"
        )
    return ordered(names)
