"""download: writes texts labelled with class numbers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

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
    beside,
    checked_rows,
    clean_text,
    storable,
)
from transformer.data.select import Selection
from transformer.data.sources import AddingDownload, open_corpus
from transformer.data.text import one_line

UNLABELLED = -1
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


class LabelledDownload(AddingDownload):
    """Source of the labelled texts."""

    unsupervised: bool
    """Keep unlabelled texts, except near-duplicates of validation and test texts."""
    labels: Literal["train"] | list[str] | None
    """The labels as the corpus writes them, in class order, from class 0; with two, the second is the positive class.
    `train` uses the labels found in train, sorted; null the task's classes, by name or number."""

    @field_validator("labels", mode="before")
    @classmethod
    def _as_text(cls, labels: Any) -> Any:
        if labels is None or labels == "train":
            return labels
        if not isinstance(labels, list):
            raise ValueError(f"must be `train`, null or a list of labels, not {labels!r}")
        names = [label_name(label) for label in labels]
        if None in names or len({*names}) < len(names) or not 2 <= len(names) <= MOST_CLASSES:
            shown = f"{len(labels):,}" if len(labels) > MOST_CLASSES else labels
            raise ValueError(f"must be 2 to {MOST_CLASSES} different labels, not {shown}")
        return names


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
        scratch=beside(paths.corpus, "hub"),
        progress=params.runtime.progress,
        added=Path(section.added),
    ) as corpus:
        chosen = _named(_required(corpus, unsupervised=section.unsupervised), task, section, observer)
        classes = _classes(task, section, chosen)
        selection = Selection(chosen, section, unlabelled=UNSUPERVISED)

        def finish(folder: Path) -> Mapping[str, Any]:
            if classes != task.classes:
                write_labels(folder, classes)
            return {"labels": _counted(selection, classes)}

        counts = selection.write(
            paths.corpus,
            partial(_check_of, classes=classes),
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


def _named(corpus: Corpus, task: Task, section: LabelledDownload, observer: Observer) -> Corpus:
    """Replace numeric labels by the label names of their part, if these match the classes.

    IMDB's `neg` is `negative`. If the names match no class, such as `ham` and `spam` when the task defines the classes,
    the numbers are kept and read as class numbers. Each part has its own names.
    """
    parts = [*(part for parts in corpus.splits.values() for part in parts), *corpus.added]
    given = {tuple(part.label_names) for part in parts if part.label_names}
    if not given:
        return corpus
    used = {names: _used(names, task, section, corpus, observer) for names in sorted(given)}
    if any(used.values()) and (unnamed := [part.name for part in parts if not part.label_names]):
        observer.say(f"labels of {unnamed[0]} have no names there, unlike others: numbers are those of the classes")

    return with_names(corpus, used)


def with_names(corpus: Corpus, used: Mapping[tuple[str, ...], Sequence[str]] | None = None) -> Corpus:
    """Replace numeric labels by names in the parts that have label names.

    used: maps a part's names to labels, empty to keep its numbers; None to use the names themselves.
    """

    def named(parts: Sequence[Part]) -> list[Part]:
        each = [(part, (*part.label_names,)) for part in parts]
        found = [(part, names if used is None else used.get(names)) for part, names in each]
        return [replace(part, read=partial(_with_names, part, names)) if names else part for part, names in found]

    splits = {split: named(parts) for split, parts in corpus.splits.items()}
    return replace(corpus, splits=splits, added=named(corpus.added))


def _used(
    given: Sequence[str], task: Task, section: LabelledDownload, corpus: Corpus, observer: Observer
) -> Sequence[str]:
    """Return the labels that a part's label names map to; empty if its numbers are used."""
    if section.labels == "train":
        return given
    classes = _classes(task, section, corpus)
    names = [_class_of(name, classes) or name for name in given]
    if len({*names}) < len(names):  # `neg` and `negative` side by side are two labels
        names = list(given)
    if _are_of(names, classes):
        return names
    read = ", ".join(f"{number} (`{name}`)" for number, name in enumerate(names))
    observer.say(f"labels are read by number: {read} are {in_words(class_labels(classes))}")
    return ()


def _are_of(names: Sequence[str], classes: Sequence[str]) -> bool:
    """True if label names match the classes; numbers only if all do, since 1 to 5 may mean classes 0 to 4."""
    given, wanted = {*names}, {*classes}
    if all(map(is_number, given | wanted)):
        return given <= wanted or wanted <= given
    return bool(given & wanted)


def _class_of(name: str, classes: Sequence[str]) -> str | None:
    """Return the class with this name, ignoring case, or the only one with this prefix, such as `pos`; else None."""
    given = name.casefold()
    same = [each for each in classes if each.casefold() == given]
    longer = [each for each in classes if len(given) > 2 and each.casefold().startswith(given)]
    return next(iter(same or (longer if len(longer) == 1 else ())), None)


def _with_names(part: Part, names: Sequence[str]) -> Iterator[Row | Fault]:
    for row in part.read():
        if not isinstance(row, Fault):
            number = row.get("label")
            if isinstance(number, int) and 0 <= number < len(names):
                row = row | {"label": names[number]}
        yield row


def _classes(task: Task, section: LabelledDownload, corpus: Corpus) -> tuple[str, ...]:
    if section.labels == "train":
        return learned(corpus)
    return task.classes if section.labels is None else tuple(section.labels)


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


def _check_of(split: str, *, classes: Sequence[str]) -> Check:
    return _check_unlabelled if split == UNSUPERVISED else partial(check_labelled, labels=class_labels(classes))


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
        raise ValueError(f"the label must be {in_words(labels)}, not {found!r} (`labels` may name others)")
    return {"label": labels[name], "text": clean_text(row, "text")}


def label_name(label: Any) -> str | None:
    """Return a label as text, or None for no label (null, NaN or an empty text).

    Whole floats lose their fraction, since a column with missing values turns integers into floats. Text is normalised
    to NFC, so that labels that look the same are the same.
    Raises ValueError for a list or a mapping, and for text that cannot be stored.
    """
    if label is None or label != label:  # NaN
        return None
    if isinstance(label, list | dict | bytes):
        raise ValueError(f"`label` must be a text or a number, not {type(label).__name__}")
    text = storable(one_line(normalize("NFC", str(label))), "label")
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


def class_labels(classes: Sequence[str]) -> dict[str, int]:
    """Return class numbers by label as written in a corpus: number or name, or only the name if names are numbers."""
    names = {name: number for number, name in enumerate(classes)}
    numbers = {str(number): number for number in range(len(classes))}
    return names if any(is_number(name) for name in classes) else numbers | names


def is_number(name: str) -> bool:
    """True if a label is a number."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def in_words(labels: Mapping[str, int]) -> str:
    """List the accepted labels in a sentence, grouped by class."""
    written: dict[int, list[str]] = {}
    for text, number in labels.items():
        written.setdefault(number, []).append(text)
    return " or ".join(" ".join((first, *(f"({name})" for name in others))) for first, *others in written.values())
