"""How own files become rows: the layouts of a folder, and the columns that become fields."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.files import is_passing
from transformer.core.unchanged import hint_of_clone, refuse_outside_of_clone
from transformer.data.corpus import Corpus, Fault, Part, Row

LAYOUTS = (
    "<split>.<language>[.gz] for each language, <split>.jsonl[.gz], <split>.json[.gz], <split>.tsv[.gz], "
    "<split>.csv[.gz], <split>.parquet, <split>-00000-of-00001.parquet; splits: train, val, test, test_<name>; "
    "<name>.<language>-<language>.<language>[.gz] (OPUS) is read as train, or as the split that <name> is"
)
_SUBFOLDERS = ("plain_text", "data")
ALIASES = {"val": "validation", "valid": "validation", "dev": "validation", "test_2016_flickr": "test"}
"""Alternative names of splits."""
_SPLITS = {"train", "test", *ALIASES, *ALIASES.values()}
_SHOWN = 3  # files
_SPLIT = re.compile(r"train|val|valid|validation|dev|test|test_[A-Za-z0-9_]+|unsupervised")
_FILE = re.compile(
    rf"(?P<split>{_SPLIT.pattern})"
    r"(?P<shard>-(?P<index>[0-9]{5})-of-(?P<shards>[0-9]{5}))?\.(?P<kind>[A-Za-z0-9_-]+)(?P<gz>\.gz)?"
)
_CODE = "[a-z]{2,3}(?:_[A-Za-z]+)?"
_OPUS = re.compile(rf"(?P<split>[^.].*\.(?P<one>{_CODE})-(?P<two>{_CODE}))\.(?P<kind>(?P=one)|(?P=two))(?:\.gz)?")
_KINDS = {"jsonl": "jsonl", "json": "jsonl", "tsv": "tsv", "csv": "csv", "parquet": "parquet"}
_UNREMARKABLE = re.compile(r"\..*|README.*|LICEN[CS]E.*|.*\.md", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class SplitFiles:
    """Files of one split: parallel texts in the order of the languages, or one or more shards of other kinds."""

    kind: str
    paths: Sequence[Path]


def find_splits(folder: Path, *, columns: Sequence[str]) -> tuple[dict[str, SplitFiles], list[str]]:
    """Find the files of each split in `folder` and its subfolders `plain_text` and `data`, and the ignored files.

    columns: those of a row; the extension of a plain text file names its column. Raises UserError when the folder is
    missing, nothing is found, or a split is found twice or incomplete.
    """
    refuse_outside_of_clone(folder)
    if not folder.is_dir():
        if folder.is_file():
            raise UserError(f"{folder} is a file: `path` names the folder that it is in")
        hint = hint_of_clone(folder)
        raise UserError(f"the folder {folder} is missing: put the corpus there, or change `path`{hint}")
    variants, ignored = _variants(folder, columns)
    if not variants:
        hint = f"{_unread(ignored) or _folders(folder)}{hint_of_clone(folder)}"
        raise UserError(f"nothing to read in {folder}{hint}; it may contain: {LAYOUTS}")
    splits = {}
    for split, found in sorted(variants.items()):
        if len(found) > 1:
            names = ", ".join(paths[sorted(paths)[0]].name for paths in found.values())
            raise UserError(f"{folder} has the split `{split}` more than once ({names}): keep one; layouts: {LAYOUTS}")
        [((stem, kind), paths)] = found.items()
        splits[split] = SplitFiles(kind=kind, paths=_complete(folder / stem, kind, paths, columns))
    return splits, ignored


def text_extensions(folder: Path) -> list[str]:
    """Return the extensions of train's plain text files: the languages of `train.de` and `train.en`, or of OPUS's.

    Beside a table with the training rows, a file such as `train.xlsx` is none.
    """
    found: dict[str, None] = {}
    for place in _places(folder):
        for path in _files(place):
            match = _FILE.fullmatch(path.name) or _OPUS.fullmatch(path.name)
            if match is None or _split(match) != "train":
                continue
            if match["kind"] in _KINDS:
                return []
            found[match["kind"]] = None
    return list(found)


def _places(folder: Path) -> Iterator[Path]:
    """Yield the folders to read. Raises UserError for one whose files DVC does not see: it would miss changes."""
    if folder.is_dir():
        yield folder
    for place in (folder / name for name in _SUBFOLDERS):
        if place.is_symlink() or (place / ".dvc").exists():
            what = "a link" if place.is_symlink() else "a DVC repository of its own"
            raise UserError(f"{place} is {what}, whose files DVC does not follow: name it as `path` itself")
        if place.is_dir():
            yield place


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if not is_passing(Path(path.name)))


def _unread(ignored: Sequence[str]) -> str:
    """Build the message for files that match no layout."""
    if not ignored:
        return ""
    more = f" and {len(ignored) - _SHOWN} more" if len(ignored) > _SHOWN else ""
    named = any(Path(name).name.partition(".")[0] in _SPLITS for name in ignored)
    advice = "of no layout" if named else "called after no split: call the training rows `train`"
    return f" (it has {', '.join(ignored[:_SHOWN])}{more}, {advice})"


def _folders(folder: Path) -> str:
    """Build the message for folders in place of files, such as IMDB's, with one file per text."""
    found = [path.name for path in sorted(folder.iterdir()) if path.is_dir() and path.name in _SPLITS]
    return f" (the folder {found[0]} is not read: write its texts to a table, a row for each)" if found else ""


_Variants = dict[str, dict[tuple[str, str], dict[str, Path]]]


def _variants(folder: Path, columns: Sequence[str]) -> tuple[_Variants, list[str]]:
    """Group the files by split, by stem and kind, then by column (plain text) or shard (others); and the rest."""
    variants: _Variants = defaultdict(lambda: defaultdict(dict))
    ignored: list[str] = []
    opus = _opus(columns)
    for place in _places(folder):
        for path in _files(place):
            match = _FILE.fullmatch(path.name) or opus.fullmatch(path.name)
            kind = match and _kind(match, columns)
            if not match or not kind:
                if path.is_file() and not _UNREMARKABLE.fullmatch(path.name):
                    ignored.append(path.relative_to(folder).as_posix())
                continue
            key = match["kind"] if kind == "text" else match["shard"] or ""
            stem = str(place.relative_to(folder) / match["split"])
            files = variants[_split(match)][stem, kind]
            if key in files:
                raise UserError(f"{place} has both {files[key].name} and {path.name}: keep one")
            files[key] = path
    return variants, ignored


def _split(match: re.Match[str]) -> str:
    """Return a file's split: for OPUS train, unless the name before its languages is one, as in `test.de-en.de`."""
    split = match["split"]
    if match.re is not _FILE:
        split = split.rpartition(".")[0]
        split = split if _SPLIT.fullmatch(split) else "train"
    return ALIASES.get(split, split)


def _opus(columns: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for `NAME.de-en.de`: both languages in OPUS's order, and the file's language."""
    codes = "|".join(re.escape(column) for column in columns)
    pair = rf"(?:{codes})-(?:{codes})"
    return re.compile(rf"(?P<split>[^.].*\.{pair})(?P<shard>(?!))?\.(?P<kind>{codes})(?P<gz>\.gz)?")


def _kind(match: re.Match[str], columns: Sequence[str]) -> str | None:
    """Return `text`, `jsonl`, `tsv` or `parquet`; None for a file that is not part of the corpus."""
    kind = "text" if match["kind"] in columns else _KINDS.get(match["kind"])
    if (match["shard"] and kind != "parquet") or (match["gz"] and kind == "parquet"):
        return None
    return kind


def _complete(stem: Path, kind: str, files: Mapping[str, Path], columns: Sequence[str]) -> list[Path]:
    """Return the files in order. Raises UserError when one is missing or extra."""
    if kind == "text":
        if missing := [column for column in columns if column not in files]:
            raise UserError(f"{stem}.{missing[0]} is missing beside {next(iter(files.values())).name}")
        return [files[column] for column in columns]
    expected = {""} if "" in files else _shards(files)
    if missing := sorted(expected - files.keys()):
        raise UserError(f"{stem}{missing[0]}.{kind} is missing: the split is incomplete")
    if extra := sorted(files.keys() - expected):
        raise UserError(f"{files[extra[0]]} does not belong to the split's other files: keep one set")
    return [files[shard] for shard in sorted(files)]


def _shards(files: Mapping[str, Path]) -> set[str]:
    count = next(iter(files)).rpartition("-")[2]
    return {f"-{index:05d}-of-{count}" for index in range(int(count))}


Available = Mapping[str, Sequence[str]]
"""Columns of a table, each with its inner names if it holds mappings."""


@dataclass(frozen=True)
class Columns:
    """Our columns, mapped to the corpus's: `name`, or `outer.inner` for a value within a mapping.

    A row with none of the names may have them within one mapping, as the Hub's `{"translation": {"de": ...}}`.
    """

    names: Mapping[str, str]
    optional: str | None = None
    """Our column that a table may lack."""

    @property
    def theirs(self) -> list[str]:
        """The corpus's names, in our order."""
        return list(self.names.values())

    def top(self, available: Available) -> list[str] | None:
        """Return the columns of a table to read for these names, all if there are no names; None if one is missing."""
        if not self.names:
            return list(available)
        found = {ours: name for ours, path in self.names.items() if (name := _top(path, available)) is not None}
        if self._required <= found.keys():
            return list(dict.fromkeys(found.values()))
        nested = [
            name for name, within in available.items() if {self.names[ours] for ours in self._required} <= {*within}
        ]
        return nested if len(nested) == 1 and not found else None

    def missing(self, available: Available) -> str:
        """Return the first name that a table with these columns lacks."""
        within = next((names for names in available.values() if {*self.theirs} & {*names}), ())
        lacking = [
            path for ours, path in self.names.items() if ours in self._required and _top(path, available) is None
        ]
        return next((path for path in lacking if path not in within), lacking[0])

    @property
    def _required(self) -> set[str]:
        return self.names.keys() - {self.optional}

    def renamed(self, corpus: Corpus) -> Corpus:
        """Return the corpus with our column names."""
        splits = {split: [self._part(part) for part in parts] for split, parts in corpus.splits.items()}
        return replace(corpus, splits=splits)

    def _part(self, part: Part) -> Part:
        return replace(part, read=partial(self._rows, part))

    def _rows(self, part: Part) -> Iterator[Row | Fault]:
        for row in part.read():
            yield row if isinstance(row, Fault) else self._row(row)

    def _row(self, row: Row) -> Row:
        found = self._values(row)
        if not found:
            nested = [value for value in row.values() if isinstance(value, dict) and self._values(value)]
            found = self._values(nested[0]) if len(nested) == 1 else {}
        return found

    def _values(self, row: Row) -> Row:
        found = {ours: _value(row, path) for ours, path in self.names.items()}
        return {ours: value for ours, value in found.items() if value is not _ABSENT}


_ABSENT = object()


def _top(path: str, available: Available) -> str | None:
    if path in available:
        return path
    outer, _, inner = path.partition(".")
    return outer if inner in available.get(outer, ()) else None


def _value(row: Row, path: str) -> Any:
    if path in row:
        return row[path]
    outer, _, inner = path.partition(".")
    nested = row.get(outer)
    return nested.get(inner, _ABSENT) if inner and isinstance(nested, dict) else _ABSENT
