"""`transformer new-corpus`: inspect a folder of files, and write a profile with suitable parameters."""

import math
import re
from collections import Counter, defaultdict
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
from transformer.data.corpus import Check, Corpus, Fault, LeftOut, Row, checked_rows, clean_text
from transformer.data.files import read_folder
from transformer.data.layouts import Columns, text_extensions
from transformer.data.leakage import words
from transformer.data.select import NEAR
from transformer.data.tables import Quotes
from transformer.families.classifier.download import ANY_LANGUAGE, ordered

_LABELS = "label labels class category intent topic sentiment rating stars".split()  # noqa: SIM905  # code names no task
_TEXTS = "text sentence review comment message content body".split()  # noqa: SIM905
_CODE = re.compile("(?!id)[a-z]{2}([-_].+)?")  # `id` is Indonesian less often than an identifier
_SAY = "say `--columns label=COLUMN text=COLUMN`, or for translations `--columns de=COLUMN en=COLUMN`, source first"


def recognise(folder: Path, given: Sequence[str] | None = None, *, quotes: Quotes = "csv") -> dict[str, str]:
    """Return the two columns to read, by our names: `label` and `text`, or the codes of two languages, source first.

    given: our names with the corpus's, such as `label=stars`; quotes: as found by `quoting`. Raises UserError if the
    names of files and columns do not tell which, or if no row of train has text in them.
    """
    if given:
        columns = {ours: theirs or ours for ours, _, theirs in (each.partition("=") for each in given)}
        if len(columns) != 2:
            raise UserError(f"`--columns` names one column twice: {_SAY}")
    else:
        columns = _by_name(folder, text_extensions(folder) or _column_names(folder, quotes))
    texts = [name for name in columns if name != "label"]
    _first_row(folder, columns, lambda row: {name: clean_text(row, name) for name in texts}, quotes)
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
    """Return the columns of train; those within a mapping as `outer.inner`."""
    names: list[str] = []
    for name, value in _first_row(folder, {}, lambda row: row, quotes).items():
        names += [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name]
    return names


def _opened(folder: Path, columns: Mapping[str, str], quotes: Quotes) -> Corpus:
    """Open the corpus; columns: as in `Columns`, or empty for all under their own names."""
    read = Columns(columns)
    corpus = read_folder(folder, columns=read, quotes=quotes)
    return read.renamed(corpus) if columns else corpus


def _first_row(folder: Path, columns: Mapping[str, str], check: Check, quotes: Quotes) -> Row:
    """Return the first valid row of train; columns: as in `_opened`."""
    left_out, corpus = LeftOut("skip"), _opened(folder, columns, quotes)
    corpus.require(("train",))
    row = next(checked_rows(corpus.splits["train"], check, left_out), None)
    if row is None:
        raise UserError(f"no row of train can be used: {next(iter(left_out.shown), 'it is empty')}")
    return row


_RARE = 0.05  # of the rows


def quoting(folder: Path) -> Quotes:
    """Return what quotation marks mean in the tables of a folder: the value of `download.quotes`.

    `multiline` only where many rows need it: a single stray mark makes one field of all rows up to the next one. Nor
    where the lines of its fields are rows themselves, such as subtitles of which one opens a quotation and the next one
    ends it; commas in texts make such lines of two columns by chance.
    """
    if not (found := _read(folder, "csv"))["faults"]:
        return "csv"
    text, multiline = _read(folder, "none"), _read(folder, "multiline")
    gained, lost = multiline["rows"] - found["rows"], text["faults"] - multiline["faults"]
    if gained > _RARE * (found["rows"] + found["faults"]) and (lost > gained / 2 or text["chance"]):
        return "multiline"
    return "none" if text["rows"] > found["rows"] and text["loose"] > text["enclosed"] else "csv"


def _read(folder: Path, quotes: Quotes) -> Counter[str]:
    """Count rows and faults, and rows with marks: `enclosed` if a field's first and last characters, else `loose`.

    `chance`: rows of two columns that tabs do not separate; `needless`: rows with marks that no writer needs.
    """
    found = Counter[str]()
    if text_extensions(folder):
        return found
    for part in (part for parts in _opened(folder, {}, quotes).splits.values() for part in parts):
        if not _TABLE.fullmatch(part.name):
            continue
        try:
            for row in part.read():
                found["faults" if isinstance(row, Fault) else "rows"] += 1
                found["chance"] += not isinstance(row, Fault) and len(row) == 2 and ".tsv" not in part.name[-7:]
                if not isinstance(row, Fault) and (marked := [text for text in row.values() if '"' in str(text)]):
                    found["needless"] += all(_NEEDLESS.fullmatch(str(text)) for text in marked)
                    found["enclosed" if all(_ENCLOSED.fullmatch(str(text)) for text in marked) else "loose"] += 1
        except UserError:  # reported when the columns are recognised
            found["faults"] += 1
    return found


_TABLE = re.compile(r".*\.[ct]sv(\.gz)?", re.DOTALL)
_ENCLOSED = re.compile(r'\s*".*"\s*', re.DOTALL)
_NEEDLESS = re.compile(r'"[^"]+"')
_ALIKE = 0.2  # of train: where more rows nearly equal held-out ones, they are kept
_FEW_CUT = 0.01  # of the rows
_TURKIC = "\u0131"  # the dotless i, lowercase of I in Turkish and Azeri alone


class _Lines(Observer):
    """Collects a stage's messages."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, line: str) -> None:
        """Append the message."""
        self.said.append(line)


def new_corpus(root: Path, folder: Path, *, name: str | None, columns: Sequence[str] | None) -> Iterator[str]:
    """Write `profiles/NAME.yaml` for the corpus in `folder`; yield the findings and the estimated cost of training.

    columns: as for `recognise`. Raises UserError if the folder's layout is not recognised.
    """
    if re.search("[\ud800-\udfff]", str(folder.resolve())):
        raise UserError(f"the folder's name, {str(folder)!a}, is not UTF-8: rename it")
    profile = name or folder.resolve().name.lower().replace(" ", "-")
    target = profile_path(profile)
    if (root / target).exists():
        raise UserError(f"{target} is there: remove it, or give another `--name`")
    refuse_around_project(folder)
    quotes = quoting(folder)
    found = recognise(folder, columns, quotes=quotes)
    classifier = found.keys() == {"label", "text"}
    task = open_task(tasks_of("classifier" if classifier else "seq2seq")[0])
    what = "labelled texts" if classifier else f"sentence pairs, {' to '.join(found)}"
    yield f"{folder}: {what}, for the task {task.name}"
    yield f"columns read: {', '.join(found.values())}"
    path = folder.resolve()
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    unusable = [*_unusable(_opened(path, found, quotes), [name for name in found if name != "label"])]
    yield from unusable
    yield "rehearsing: the download, then every stage up to training on some rows, and some seconds of updates"
    download: dict[str, Any] = {"source": "files", "path": path.as_posix(), "bad_rows": "skip"}
    download |= {"labels": "train"} if classifier else {"languages": list(found)}
    if quotes != "csv":
        download["quotes"] = quotes
        yield f"quotation marks in tables: {_MARKS[quotes]} (`quotes: {quotes}`)"
    elif 0 < (marks := _read(folder, "none"))["needless"] < marks["rows"]:
        yield f"quotation marks around texts ({marks['needless']:,} rows) are taken off; `quotes: none` keeps them"
    if renamed := {ours: theirs for ours, theirs in found.items() if ours != theirs}:
        download["columns"] = renamed

    def downloaded(paths: Paths) -> tuple[list[str], dict[str, Any]]:
        lines = _Lines()
        content = merged_values(root, profile, {task.name: {"download": download}})
        run_stage(content, task, "download", paths, lines)
        return lines.said, read_json(paths.corpus / "provenance.json")

    with TemporaryDirectory() as place:
        paths = Paths(data=Path(place, "data"), models=Path(place, "models"), reports=Path(place, "reports"))
        try:
            said, provenance = downloaded(paths)
            alike = provenance.get("left_out", {}).get("train", {}).get(NEAR, 0)
            many_alike = alike > _ALIKE * (alike + provenance["rows"]["train"])
        except UserError:
            many_alike = True  # no row was left; or for another reason, which is then raised below
        if many_alike:
            download["near_duplicates"] = "keep"
            said, provenance = downloaded(paths)
            yield (
                "much of train nearly equals held-out rows and stays (near_duplicates: keep), so the scores say little"
                " about other texts; give it a test split of its own"
            )
        yield from (line for line in said if line not in unusable)
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
    """Say which labels are perhaps meant to be one: they differ in case alone, or are the same number."""
    groups = defaultdict[float | str, list[str]](list)
    for label in labels:
        try:
            groups[float(label.replace(",", "."))].append(label)
        except ValueError:
            groups[label.casefold()].append(label)
    for group in groups.values():
        if len(group) > 1:
            yield f"{', '.join(group)} are different labels; a mapping in `labels` gives them one name"


_MARKS = {"none": "they are text", "multiline": "they enclose fields, also with line ends"}


def _unusable(corpus: Corpus, texts: Sequence[str]) -> Iterator[str]:
    """Say which rows cannot be used, as the download will, before anything is concluded from the others."""
    for split, parts in corpus.splits.items():
        left_out = LeftOut("skip")
        if split != UNSUPERVISED:
            for _ in checked_rows(parts, lambda row: {name: clean_text(row, name) for name in texts}, left_out):
                pass
        yield from left_out.lines(split)


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
    positions = min(max(64, 1 << (2 * longest + 1).bit_length()), 1024)
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
