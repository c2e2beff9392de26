"""`transformer new-corpus`: looks at a folder of files, and writes a profile with the parameters that fit."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer.commands.profiles import FROM_NOTHING, merged_values, require_free, write_profile
from transformer.commands.recognise import Found, recognise
from transformer.commands.rehearsal import Rehearsal, rehearse
from transformer.core.errors import UserError
from transformer.core.task import MOST_CLASSES, UNSUPERVISED, open_task
from transformer.corpora.columns import Columns
from transformer.corpora.corpus import Corpus, LeftOut, Row, checked_rows, clean_text
from transformer.corpora.files import read_folder
from transformer.families.classifier.download import label_name, ordered, with_names
from transformer.families.classifier.tokenize import ANY_LANGUAGE
from transformer.registry import TASKS

_SHOWN = 3
_FEW_CUT = 0.01  # of train
_ALIKE = 0.2  # of train: as many rows are not left out


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
    characters: set[str] = field(default_factory=set)


def new_corpus(root: Path, folder: Path, *, name: str | None, columns: Sequence[str] | None) -> Iterator[str]:
    """Write `profiles/NAME.yaml` for the corpus in `folder`; yields what was found and what training would cost.

    columns: as for `recognise`. Raises UserError where the folder cannot be understood.
    """
    given = name or folder.resolve().name.lower().replace(" ", "-")
    require_free(root, given)
    found = recognise(folder, columns)
    task = next(open_task(task) for task in TASKS if open_task(task).family == found.family)
    read = Columns(dict(found.columns))
    corpus = with_names(read.renamed(read_folder(folder, columns=read)))
    corpus.require(("train",))
    yield f"{folder}: {_what(found)}, for the task {task.name}"
    yield "columns read: " + ", ".join(found.columns.values())
    statistics = {split: _statistics(corpus, split, found) for split in corpus.splits}
    for split, each in statistics.items():
        yield from _told(split, each)
    if UNSUPERVISED in statistics and found.family == "classifier":
        yield f"{UNSUPERVISED} is not used; `unsupervised: true` under `download` in the profile changes that"
    if corpus.ignored:
        yield f"ignored, since their names are of no layout: {', '.join(corpus.ignored)}"
    if missing := [split for split in ("validation", "test") if split not in statistics]:
        yield f"no {' and no '.join(missing)} split: a tenth of train will be held out for each"
    train = statistics["train"]
    if not train.rows:
        raise UserError(f"{folder}: no row of train can be used; the first reasons stand above")
    if found.family == "classifier" and not 2 <= len(train.labels) <= MOST_CLASSES:
        raise UserError(
            f"{folder}: `{found.columns['label']}` has {len(train.labels)} different labels in train, but a classifier"
            f" needs 2 to {MOST_CLASSES}: correct or join them, or name another column with `--columns`"
        )
    section = _parameters(folder, found, statistics)
    rows = {split: each.rows for split, each in statistics.items()}

    def rehearsed() -> Rehearsal:
        return rehearse(merged_values(root, given, {task.name: section}), task, corpus, found.columns, rows)

    yield "rehearsing: the download, then every stage up to training on some rows, and some seconds of updates"
    try:
        rehearsal = rehearsed()
        alike = rehearsal.share_alike > _ALIKE
    except UserError:
        alike = True  # nothing was left; or for another reason, which is then raised below
    if alike:
        section["download"]["near_duplicates"] = "keep"
        rehearsal = rehearsed()
        yield (
            "much of train nearly equals held-out rows and stays (near_duplicates: keep), so the scores say little"
            " about other texts; give it a test split of its own"
        )
    heading = f"{_what(found).capitalize()} of {folder.name}."
    path = write_profile(root, given, {task.name: section}, heading=heading)
    yield f"{path.relative_to(root)} written"
    yield rehearsal.told(section["train"])
    if rehearsal.cut > _FEW_CUT:
        longest = section["model"]["max_length"]
        yield f"{rehearsal.cut:.0%} of the rows are longer than {longest:,} tokens: only their beginning will be read"
    if found.family != "classifier":
        yield "answers will be in lowercase: set `lowercase: false` under `tokenize` in the profile to keep case"
    yield f"Next: make repro PROFILE={given} TASK={task.name}"


def _what(found: Found) -> str:
    return "labelled texts" if found.family == "classifier" else f"sentence pairs, {' to '.join(found.columns)}"


def _statistics(corpus: Corpus, split: str, found: Found) -> Statistics:
    from transformer.evaluation.leakage import words

    result, seen = Statistics(), set[int]()

    def check(row: Row) -> Row:
        kept = {name: clean_text(row, name) for name in found.texts}
        if "label" in found.columns and split != UNSUPERVISED:
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
            result.characters.update(row[name])
        if "label" in row:
            result.labels[row["label"]] += 1
        key = hash(tuple(row.values()))
        result.repeated += key in seen
        seen.add(key)
    return result


def _told(split: str, each: Statistics) -> Iterator[str]:
    lengths = "; ".join(
        f"{name} {_quantile(words, 0.5)} words (95 %: at most {_quantile(words, 0.95)})"
        for name, words in each.lengths.items()
    )
    yield f"  {split}: {each.rows:,} rows, {each.repeated:,} of them repeated; median {lengths}"
    if each.labels:
        yield f"    labels: {', '.join(f'{label} {each.labels[label]:,}' for label in ordered(each.labels))}"
    for reason, count in each.left_out.counts.items():
        yield f"    {count:,} cannot be used: {reason}"
    for line in each.left_out.shown[:_SHOWN]:
        yield f"      {line}"


def _quantile(lengths: Sequence[int], share: float) -> int:
    return sorted(lengths)[min(math.ceil(share * len(lengths)), len(lengths)) - 1]


def _parameters(folder: Path, found: Found, statistics: Mapping[str, Statistics]) -> dict[str, Any]:
    """What differs from the default: subwords, which any script has, and a size that the rows can train."""
    train = statistics["train"]
    bad = any(each.left_out.counts for split, each in statistics.items() if split != UNSUPERVISED)
    download: dict[str, Any] = {"source": "files", "path": _path(folder)}
    renamed = {ours: theirs for ours, theirs in found.columns.items() if ours != theirs}
    download |= {"columns": renamed} if renamed else {}
    download |= {"bad_rows": "skip"} if bad else {}
    large = train.rows >= 10_000
    longest = max(_quantile(lengths, 0.99) for lengths in train.lengths.values())
    positions = min(1 << max(6, math.ceil(math.log2(2 * longest + 2))), 1024)
    # Every character is a piece: a script that has thousands of them needs more pieces than words, which it lacks.
    least = 100 * math.ceil(len(train.characters) * 0.015 + 1)
    pieces = max(300, least, min(10_000, 100 * round(len(train.words) * 0.007)))
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
            "download": download | {"labels": list(labels)},
            "tokenize": ANY_LANGUAGE,
            "vocab": {"kind": "bpe", **FROM_NOTHING["vocab"], "max_size": pieces},
            "model": {
                **FROM_NOTHING["model"],
                "dropout": 0.1,
                "positions": "none" if longest > 50 else "sinusoidal",
                "max_length": positions,
            },
            "train": common | weights | {"word_dropout": 0.1},
        }
    languages = list(found.columns)
    return {
        "download": download | {"languages": languages},
        "tokenize": {"source": languages[0], "target": languages[1], "kind": "none"},
        "vocab": {"kind": "bpe", "joint": True, "max_size": pieces},
        "model": {"tie_embeddings": "all", "dropout": 0.3 if large else 0.1, "max_length": positions},
        "train": common | {"label_smoothing": 0.1},
        "evaluate": {"method": "beam", "max_length": positions, "batch_size": 64},
    }


def _path(folder: Path) -> str:
    try:
        return folder.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(folder.resolve())
