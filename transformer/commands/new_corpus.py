"""`transformer new-corpus`: looks at a folder of files, and writes a profile with the parameters that fit."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer.commands.profiles import merged_values, write_profile
from transformer.commands.rehearsal import Rehearsal, rehearse
from transformer.core.errors import UserError
from transformer.core.task import Task, open_task
from transformer.corpora.columns import Columns
from transformer.corpora.corpus import Corpus, LeftOut, Row, checked_rows, clean_text
from transformer.corpora.files import read_folder
from transformer.corpora.layouts import text_extensions
from transformer.families.classifier.download import is_number, label_name, ordered
from transformer.registry import TASKS

_PEEKED = 1000  # rows, at least, by which the columns of a larger file are told apart
_FEW = 20  # different values of a column of labels, at most
_SHORT = 40  # characters of a label, at most
_SHOWN = 3
_ALIKE = 0.2  # of train: as many rows are not left out
_LABELS = ["label", "labels", "class", "category", "rating", "stars", "score", "target", "y"]
_CODES = {
    **{"arabic": "ar", "chinese": "zh", "czech": "cs", "dutch": "nl", "english": "en", "finnish": "fi"},
    **{"french": "fr", "german": "de", "hindi": "hi", "italian": "it", "japanese": "ja", "korean": "ko"},
    **{"polish": "pl", "portuguese": "pt", "russian": "ru", "spanish": "es", "swahili": "sw", "turkish": "tr"},
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """How a folder's rows are to be read."""

    family: str
    columns: Mapping[str, str]
    """Our names to the corpus's."""

    @property
    def texts(self) -> list[str]:
        """Our names of the columns with text."""
        return [name for name in self.columns if name != "label"]


@dataclass
class Statistics:
    """What the rows of one split are like."""

    rows: int = 0
    lengths: dict[str, list[int]] = field(default_factory=dict)
    """Words, or characters where a script has no spaces, by column."""
    labels: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    left_out: LeftOut = field(default_factory=lambda: LeftOut("skip"))
    words: set[str] = field(default_factory=set)


def new_corpus(root: Path, folder: Path, *, name: str | None, languages: Sequence[str] | None) -> Iterator[str]:
    """Write `profiles/NAME.yaml` for the corpus in `folder`; yields what was found and what training would cost.

    languages: codes of the two sides where their names do not say them. Raises UserError where the folder cannot be
    understood.
    """
    found = recognise(folder, languages)
    task = next((open_task(task) for task in TASKS if open_task(task).family == found.family), None)
    if task is None:
        raise UserError(f"{folder} looks like a corpus for the family {found.family}, and no task is of it")
    columns = Columns(dict(found.columns))
    corpus = columns.renamed(read_folder(folder, columns=columns))
    corpus.require(("train",))
    statistics = {split: _statistics(corpus, split, found) for split in corpus.splits}
    yield f"{folder}: {_what(found)}, for the task {task.name}"
    for split, each in statistics.items():
        yield from _told(split, each, found)
    if corpus.ignored:
        yield f"ignored, since their names are of no layout: {', '.join(corpus.ignored)}"
    missing = [split for split in ("validation", "test") if split not in statistics]
    if missing:
        yield f"no {' and no '.join(missing)} split: a tenth of train will be held out for each"
    if not statistics["train"].rows:
        raise UserError(f"{folder}: no row of train can be used; the first reasons stand above")
    section, given = _parameters(task, folder, found, statistics), name or _name(folder)
    rows = {split: each.rows for split, each in statistics.items()}

    def rehearsed() -> Rehearsal:
        values = merged_values(root, given, {task.name: section})
        return rehearse(values, task, corpus, found.columns, rows)

    try:
        rehearsal = rehearsed()
        share = rehearsal.alike / rehearsal.rows
    except UserError:
        share = 1.0  # or for another reason, which is then raised below
    if share > _ALIKE:
        section["download"]["near_duplicates"] = "keep"
        rehearsal = rehearsed()
        yield f"{share:.0%} of train nearly equals a held-out row and stays: the scores say little about other texts"
    heading = f"{_what(found).capitalize()} of {folder.name}."
    path = write_profile(root, given, {task.name: section}, heading=heading)
    yield f"{path.relative_to(root)} written"
    yield rehearsal.told(rows["train"], section["train"])
    yield f"Next: make repro PROFILE={given} TASK={task.name}"


def _name(folder: Path) -> str:
    return folder.resolve().name.lower().replace(" ", "-")


def _what(found: Found) -> str:
    if found.family == "classifier":
        return "labelled texts"
    return f"sentence pairs, {' to '.join(found.columns)}"


def recognise(folder: Path, languages: Sequence[str] | None = None) -> Found:
    """Tell pairs from labelled texts by the files' names and the first rows' columns. Raises UserError."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds train and, if there are any, val and test")
    extensions = text_extensions(folder)
    if len(extensions) == 2:
        return Found(family="seq2seq", columns=_sides(extensions, extensions, languages))
    if extensions:
        raise UserError(f"{folder} has train in {', '.join(extensions)}: plain text must be in two languages")
    corpus = read_folder(folder, columns=Columns({}))
    corpus.require(("train",))
    read = (row for part in corpus.splits["train"] for row in part.read())
    rows = _spread(row for row in read if isinstance(row, dict))
    return _by_columns(folder, rows, languages)


def _by_columns(folder: Path, rows: Sequence[Row], languages: Sequence[str] | None) -> Found:
    values = _values(rows)
    texts = [name for name, column in values.items() if _is_text(column)]
    labels = [name for name, column in values.items() if name not in texts and _is_label(column)]
    labels.sort(key=lambda name: (name.lower() not in (*_LABELS, *TASKS), len(values[name])))
    if labels and texts:
        longest = max(texts, key=lambda name: sum(map(len, map(str, values[name]))))
        return Found(family="classifier", columns={"label": labels[0], "text": longest})
    if len(texts) == 2:
        codes = [_CODES.get(name.rpartition(".")[2].lower(), name.rpartition(".")[2]) for name in texts]
        return Found(family="seq2seq", columns=_sides(codes, texts, languages))
    raise UserError(
        f"{folder}: of the columns {', '.join(values) or '(none)'} neither two are sentences nor one a text and one its"
        " label: name them in `download.columns` of params.yaml"
    )


def _spread(rows: Iterator[Row]) -> list[Row]:
    """Rows from all over the file, which may be sorted by label."""
    kept: list[Row] = []
    step = 1
    for number, row in enumerate(rows):
        if number % step == 0:
            kept.append(row)
        if len(kept) == 2 * _PEEKED:
            kept, step = kept[::2], 2 * step
    return kept


def _sides(codes: Sequence[str], names: Sequence[str], languages: Sequence[str] | None) -> dict[str, str]:
    """The columns by language, English last unless the languages are given in their order."""
    if languages:
        if {*languages} == {*codes}:
            return {code: names[codes.index(code)] for code in languages}
        return dict(zip(languages, names, strict=True))
    if strange := [code for code in codes if not (code.isalpha() and 2 <= len(code.partition("_")[0]) <= 3)]:
        raise UserError(f"`{strange[0]}` names no language: say both, as in `--languages de en`")
    return dict(sorted(zip(codes, names, strict=True), key=lambda each: each[0] == "en"))


def _values(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The values of each column; those within a mapping by `outer.inner`."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            inner = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            for path, each in inner.items():
                values.setdefault(path, []).append(each)
    return values


def _is_text(column: Sequence[Any]) -> bool:
    texts = [value for value in column if isinstance(value, str) and value.strip()]
    if len(texts) < len(column) / 2:
        return False
    different, mean = len({*texts}), sum(map(len, texts)) / max(len(texts), 1)
    return (different > _FEW or different > len(texts) / 2) and mean > 5 and not all(map(is_number, texts))


def _is_label(column: Sequence[Any]) -> bool:
    try:
        names = {label_name(value) for value in column} - {None}
    except ValueError:
        return False
    return 2 <= len(names) <= _FEW and all(len(str(name)) <= _SHORT for name in names)


def _statistics(corpus: Corpus, split: str, found: Found) -> Statistics:
    from transformer.evaluation.leakage import words

    result, seen = Statistics(), set[int]()

    def check(row: Row) -> Row:
        kept = {name: clean_text(row, name) for name in found.texts}
        if "label" in found.columns:
            label = label_name(row.get("label"))
            if label is None:
                raise ValueError("`label` is missing")
            kept["label"] = label
        return kept

    for row in checked_rows(corpus.splits[split], check, result.left_out):
        result.rows += 1
        for name in found.texts:
            split_words = words(row[name])
            result.lengths.setdefault(name, []).append(len(split_words))
            result.words.update(split_words)
        if "label" in row:
            result.labels[row["label"]] += 1
        key = hash(tuple(row.values()))
        result.repeated += key in seen
        seen.add(key)
    return result


def _told(split: str, each: Statistics, found: Found) -> Iterator[str]:
    found_lengths = {name: each.lengths.get(name, [0]) for name in found.texts}
    lengths = "; ".join(
        f"{name} {_quantile(words, 0.5)} words (95 %: at most {_quantile(words, 0.95)})"
        for name, words in found_lengths.items()
    )
    yield f"  {split}: {each.rows:,} rows, {each.repeated:,} of them repeated; median {lengths}"
    if each.labels:
        counts = ", ".join(f"{label} {each.labels[label]:,}" for label in ordered(each.labels))
        yield f"    labels: {counts}"
    for reason, count in each.left_out.counts.items():
        yield f"    {count:,} cannot be used: {reason}"
    for line in each.left_out.shown[:_SHOWN]:
        yield f"      {line}"


def _quantile(lengths: Sequence[int], share: float) -> int:
    return sorted(lengths)[min(math.ceil(share * len(lengths)), len(lengths)) - 1]


def _parameters(task: Task, folder: Path, found: Found, statistics: Mapping[str, Statistics]) -> dict[str, Any]:
    """What differs from the default: subwords, which any script has, and a size that the rows can train."""
    train = statistics["train"]
    bad = any(each.left_out.counts for each in statistics.values())
    download: dict[str, Any] = {"source": "files", "path": _path(folder)}
    renamed = {ours: theirs for ours, theirs in found.columns.items() if ours != theirs}
    download |= {"columns": renamed} if renamed else {}
    download |= {"bad_rows": "skip"} if bad else {}
    large = train.rows >= 10_000
    longest = max(_quantile(lengths, 0.99) for lengths in train.lengths.values())
    positions = min(1 << max(6, math.ceil(math.log2(2 * longest + 2))), 1024)
    pieces = min(10_000, max(300, 100 * round(len(train.words) * 0.007)))
    rows = 64 if large else 32
    common = {"batch_size": rows, "schedule": "cosine", "learning_rate": 1e-3, "patience": 5}
    updates = math.ceil(train.rows / rows)
    epochs = max(3, min(150, math.ceil(4000 / updates)))
    common |= {"epochs": epochs, "warmup": max(1, epochs * updates // 20)}
    if found.family == "classifier":
        labels = ordered(train.labels)
        largest = max(train.labels.values()) * len(labels) / train.rows
        weights = {"class_weights": "balanced"} if largest > 1.5 else {}
        return {
            "download": download | ({} if _is_of(task, labels) else {"labels": list(labels)}),
            "tokenize": {"language": None},
            "vocab": {"kind": "bpe", "max_size": pieces},
            "model": {"dropout": 0.1, "positions": "none" if longest > 50 else "sinusoidal", "max_length": positions},
            "train": common | weights | {"word_dropout": 0.1},
        }
    languages = list(found.columns)
    return {
        "download": download | {"languages": languages},
        "tokenize": {"source": languages[0], "target": languages[1], "kind": "none"},
        "vocab": {"kind": "bpe", "joint": True, "max_size": pieces},
        "model": {"tie_embeddings": "all", "dropout": 0.3 if large else 0.1, "max_length": positions},
        "train": common | {"label_smoothing": 0.1},
        "evaluate": {"method": "beam", "max_length": min(positions, 200), "batch_size": 64},
    }


def _is_of(task: Task, labels: Sequence[str]) -> bool:
    """Whether the labels are the task's own, by number or name."""
    return {*labels} <= {*task.classes} or {*labels} <= {str(number) for number in range(len(task.classes))}


def _path(folder: Path) -> str:
    try:
        return folder.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(folder.resolve())
