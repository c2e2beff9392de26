"""`transformer new-corpus`: inspect a folder of files, and write a profile with suitable parameters."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformer.commands.local_corpora import FROM_NOTHING
from transformer.commands.profiles import dump, merged_values, profile_path
from transformer.commands.rehearsal import rehearse, run_stage
from transformer.core.errors import UserError
from transformer.core.files import atomic_write, read_json, read_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import UNSUPERVISED, open_task, tasks_of
from transformer.core.unchanged import refuse_around_project
from transformer.data.corpus import LeftOut, checked_rows
from transformer.data.files import Quotes, read_folder
from transformer.data.layouts import Columns, text_extensions
from transformer.data.leakage import words
from transformer.data.select import NEAR
from transformer.families.classifier.download import ANY_LANGUAGE, ordered

_LABELS = "label labels class category intent topic sentiment rating stars".split()  # noqa: SIM905  # code names no task
_TEXTS = "text sentence review comment message content body".split()  # noqa: SIM905
_CODE = re.compile("(?!id)[a-z]{2}([-_].+)?")  # `id` is Indonesian less often than an identifier
_SAY = "say `--columns label=COLUMN text=COLUMN`, or for translations `--columns de=COLUMN en=COLUMN`, source first"


def recognise(folder: Path, given: Sequence[str] | None = None, *, quotes: Quotes = "csv") -> dict[str, str]:
    """Return the two columns to read, by our names: `label` and `text`, or the codes of two languages, source first.

    given: our names with the corpus's, such as `label=stars`; quotes: as in `download.quotes`. Raises UserError if the
    names of files and columns do not tell which.
    """
    if given is None:
        return _by_name(folder, text_extensions(folder) or _column_names(folder, quotes))
    columns = {ours: theirs or ours for ours, _, theirs in (each.partition("=") for each in given)}
    if len(columns) != 2:
        raise UserError(f"`--columns` names one column twice: {_SAY}")
    return columns


def _by_name(folder: Path, names: Sequence[str]) -> dict[str, str]:
    codes = [(name.rpartition(".")[2].lower(), name) for name in names]
    languages = [each for each in codes if _CODE.fullmatch(each[0])]
    labels = [name for name in names if name.lower() in _LABELS]
    texts = [name for name in names if name.lower() in _TEXTS]
    if len(languages) == len(dict(languages)) == 2 and not labels:
        return dict(sorted(languages, key=lambda each: each[0][:2] == "en"))  # into English
    if len(labels) == len(texts) == 1:
        return {"label": labels[0], "text": texts[0]}
    raise UserError(
        f"the names in {folder} ({', '.join(names)}) do not tell what to read: a table needs a header row, plain text"
        f" two languages; {_SAY}; for a language model, see docs/own-data.md"
    )


def _column_names(folder: Path, quotes: Quotes) -> list[str]:
    """Return the columns of train's first row; those within a mapping as `outer.inner`."""
    left_out, corpus = LeftOut("skip"), read_folder(folder, columns=Columns({}), quotes=quotes)
    corpus.require(("train",))
    row = next(checked_rows(corpus.splits["train"], dict, left_out), None)
    if row is None:
        raise UserError(f"no row of train can be read: {next(iter(left_out.shown), 'it is empty')}")
    nested = (
        [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name] for name, value in row.items()
    )
    return [name for names in nested for name in names]


_ALIKE = 0.2  # of train: where more rows nearly equal held-out ones, they are kept
_FEW_CUT = 0.01  # of the rows
_LONGEST = 1024  # tokens
_TURKIC = "\u0131"  # the dotless i, lowercase of I in Turkish and Azeri alone


class _Lines(Observer):
    """Collects a stage's messages."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, line: str) -> None:
        """Append the message."""
        self.said.append(line)


def new_corpus(
    root: Path, folder: Path, *, name: str | None, columns: Sequence[str] | None, quotes: Quotes
) -> Iterator[str]:
    """Write `profiles/NAME.yaml` for the corpus in `folder`; yield the findings and the estimated cost of training.

    columns, quotes: as for `recognise`. Raises UserError if the folder's layout is not recognised.
    """
    if re.search("[\ud800-\udfff]", str(folder.resolve())):
        raise UserError(f"the folder's name, {str(folder)!a}, is not UTF-8: rename it")
    profile = name or folder.resolve().name.lower().replace(" ", "-")
    target = profile_path(profile)
    if (root / target).exists():
        raise UserError(f"{target} is there: remove it, or give another `--name`")
    refuse_around_project(folder)
    found = recognise(folder, columns, quotes=quotes)
    classifier = found.keys() == {"label", "text"}
    task = open_task(tasks_of("classifier" if classifier else "seq2seq")[0])
    what = "labelled texts" if classifier else f"sentence pairs, {' to '.join(found)}"
    yield f"{folder}: {what}, for the task {task.name}"
    yield f"columns read: {', '.join(found.values())}"
    yield "rehearsing: the download, then every stage up to training on some rows, and some seconds of updates"
    path = folder.resolve()
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    download: dict[str, Any] = {"source": "files", "path": path.as_posix(), "bad_rows": "skip"}
    download |= {"labels": "train"} if classifier else {"languages": list(found)}
    if quotes != "csv":
        download["quotes"] = quotes
    if renamed := {ours: theirs for ours, theirs in found.items() if ours != theirs}:
        download["columns"] = renamed
    lines = _Lines()

    def downloaded(paths: Paths) -> dict[str, Any]:
        lines.said.clear()
        run_stage(merged_values(root, profile, {task.name: {"download": download}}), task, "download", paths, lines)
        provenance: dict[str, Any] = read_json(paths.corpus / "provenance.json")
        return provenance

    with TemporaryDirectory() as place:
        paths = Paths(data=Path(place, "data"), models=Path(place, "models"), reports=Path(place, "reports"))
        try:
            provenance = downloaded(paths)
            alike = provenance.get("left_out", {}).get("train", {}).get(NEAR, 0)
            many_alike = alike > _ALIKE * (alike + provenance["rows"]["train"])
        except UserError:
            many_alike = True  # no row was left; or for another reason, which is then raised below
        if many_alike:
            download["near_duplicates"] = "keep"
            try:
                provenance = downloaded(paths)
            except UserError:
                yield from lines.said
                raise
            yield (
                "much of train nearly equals held-out rows and stays (near_duplicates: keep), so the scores say little"
                " about other texts; give it a test split of its own"
            )
        yield from lines.said
        rows, labels = provenance["rows"], provenance.get("labels", {}).get("train", {})
        yield f"rows: {', '.join(f'{split} {count:,}' for split, count in rows.items())}"
        if all(reason == NEAR for counts in provenance.get("left_out", {}).values() for reason in counts):
            del download["bad_rows"]
        if classifier:
            download["labels"] = names = list(ordered(labels))
            yield from _alike(names)
            if len(names) == 2:
                yield f"F1, ROC and precision are of the label {names[1]}; of {names[0]} once `labels` has it second"
        if classifier and UNSUPERVISED in provenance["files"]:
            yield f"{UNSUPERVISED} is not used; `unsupervised: true` under `download` in the profile changes that"
        section = {"download": download, **_parameters(paths.corpus / "train.jsonl", labels, [*found])}
        if classifier and any(_TURKIC in row["text"] for row in read_rows(paths.corpus / "train.jsonl")):
            yield f"texts have the letter {_TURKIC}: set `language` under `tokenize` to tr or az, so that I becomes it"
        rehearsal = rehearse(
            merged_values(root, profile, {task.name: section}), task, paths.corpus, Path(place, "rehearsal")
        )
    with atomic_write(root / target) as stream:
        stream.write(f"# {folder.name}: {what}.\n\n{dump({task.name: section})}".encode())
    yield f"{target} written"
    yield rehearsal.estimate(rows["train"], section["train"])
    if rehearsal.cut > _FEW_CUT:
        longest = section["model"]["max_length"]
        way_out = "" if classifier else "; `too_long: leave_out` under `train` does not train on them"
        yield (
            f"{rehearsal.cut:.0%} of the rows are longer than {longest:,} tokens: only their beginning will be read"
            f"{way_out}"
        )
    if not classifier:
        yield "answers will be in lowercase: set `lowercase: false` under `tokenize` in the profile to keep case"
    yield f"Next: make repro PROFILE={profile} TASK={task.name}"


def _alike(labels: Sequence[str]) -> Iterator[str]:
    """Say which labels are perhaps meant to be one: they differ in case alone."""
    groups = defaultdict[str, list[str]](list)
    for label in labels:
        groups[label.casefold()].append(label)
    for group in groups.values():
        if len(group) > 1:
            yield f"{', '.join(group)} are different labels; a mapping in `labels` gives them one name"


def _parameters(train: Path, labels: Mapping[str, int], columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the changes to the default: subwords, which support any script, and a model size suited to the rows.

    train: its rows; labels: number of rows per label, empty for sentence pairs; columns: ours.
    """
    lengths, different, characters = list[int](), set[str](), set[str]()
    for row in read_rows(train):
        texts = [value for value in row.values() if isinstance(value, str)]
        found = [words(text) for text in texts]
        lengths.append(max(map(len, found)))
        different.update(*found)
        characters.update(*texts)
    longest = sorted(lengths)[len(lengths) * 99 // 100]
    positions = min(max(64, 1 << (2 * longest + 1).bit_length()), _LONGEST)
    # Every character is a piece: a script with thousands of them needs more pieces than words, which it lacks.
    pieces = round(max(300, 100 + len(characters) * 3 // 2, min(10_000, len(different) * 7 // 10)), -2)
    large = len(lengths) >= 10_000
    batch_size = 64 if large else 32
    updates = math.ceil(len(lengths) / batch_size)
    epochs = max(3, min(150, math.ceil(4000 / updates)))
    training: dict[str, Any] = {
        "batch_size": batch_size,
        "schedule": "cosine",
        "learning_rate": 1e-3,
        "patience": 5,
        "epochs": epochs,
        "warmup": max(1, epochs * updates // 20),
    }
    if labels:
        unbalanced = max(labels.values()) * len(labels) > 1.5 * len(lengths)
        weights = {"class_weights": "balanced"} if unbalanced else {}
        return {
            "tokenize": ANY_LANGUAGE,
            "vocab": {"kind": "bpe", **FROM_NOTHING["vocab"], "max_size": pieces},
            "model": {**FROM_NOTHING["model"], "dropout": 0.1, "max_length": positions},
            "train": training | weights | {"word_dropout": 0.1},
        }
    return {
        "tokenize": {"source": columns[0], "target": columns[1], "kind": "none"},
        "vocab": {"kind": "bpe", "joint": True, "max_size": pieces},
        "model": {"tie_embeddings": "all", "dropout": 0.3 if large else 0.1, "max_length": positions},
        "train": training | {"label_smoothing": 0.1},
        "evaluate": {"method": "beam", "max_length": positions, "batch_size": 64},
    }
