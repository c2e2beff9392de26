"""How own files become rows: the layouts of a folder, and the columns that become fields."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from transformer.core.errors import UserError
from transformer.core.files import is_passing
from transformer.core.unchanged import hint_of_clone, refuse_outside_of_clone
from transformer.data.corpus import Row

LAYOUTS = (
    "<split>.<language>[.gz] for each language, <split>.jsonl[.gz], <split>.json[.gz], <split>.tsv[.gz], "
    "<split>.csv[.gz], <split>.parquet, <split>-00000-of-00001.parquet; splits: train, val, test, test_<name>; "
    "<name>.<language>-<language>.<language>[.gz] (OPUS) is read as train, or as the split that <name> is"
)
ALIASES = {"val": "validation", "valid": "validation", "dev": "validation", "test_2016_flickr": "test"}
"""Alternative names of splits."""
_KINDS = ("jsonl", "json", "tsv", "csv", "parquet")
_SPLIT = re.compile(r"train|val|valid|validation|dev|test|test_[A-Za-z0-9_]+|unsupervised")
_FILE = re.compile(
    r"(?P<stem>[^.].*?)(?P<shard>-[0-9]{5}-of-(?P<shards>[0-9]{5}))?\.(?P<kind>[A-Za-z0-9_-]+)(?P<gz>\.gz)?"
)
_UNREMARKABLE = re.compile(r"\..*|README.*|LICEN[CS]E.*|.*\.md", re.IGNORECASE)
_SHOWN = 3  # files


@dataclass(frozen=True, kw_only=True)
class SplitFiles:
    """Files of one split: parallel texts in the order of the columns, or one or more shards of another kind."""

    kind: str
    paths: Sequence[Path]


def find_splits(folder: Path, *, columns: Sequence[str]) -> tuple[dict[str, SplitFiles], list[str]]:
    """Find the files of each split in `folder` and its subfolders `plain_text` and `data`, and the ignored files.

    columns: those of a row; the extension of a plain text file names its column. Raises UserError when the folder is
    missing, nothing is found, or a split is found twice or incomplete.
    """
    refuse_outside_of_clone(folder)
    if folder.is_file():
        raise UserError(f"{folder} is a file: `path` names the folder that it is in")
    if not folder.is_dir():
        hint = hint_of_clone(folder)
        raise UserError(f"the folder {folder} is missing: put the corpus there, or change `path`{hint}")
    found, ignored = _grouped(folder, columns)
    if not found:
        more = f" and {len(ignored) - _SHOWN} more" if len(ignored) > _SHOWN else ""
        hint = f" (it has {', '.join(ignored[:_SHOWN])}{more})" if ignored else ""
        raise UserError(f"nothing to read in {folder}{hint}{hint_of_clone(folder)}; it may contain: {LAYOUTS}")
    splits = {}
    for split, groups in sorted(found.items()):
        if len(groups) > 1:
            names = ", ".join(min(files.values()).name for files in groups.values())
            raise UserError(f"{folder} has the split `{split}` more than once ({names}): keep one; layouts: {LAYOUTS}")
        [((stem, kind), files)] = groups.items()
        splits[split] = SplitFiles(kind=kind, paths=_complete(folder / stem, kind, files, columns))
    return splits, ignored


def text_extensions(folder: Path) -> list[str]:
    """Return the extensions of train's plain text files: the languages of `train.de` and `train.en`, or of OPUS's.

    Beside a table with the training rows, a file such as `train.xlsx` is none.
    """
    matches = [match for _, path in _files(folder) if (match := _FILE.fullmatch(path.name))]
    kinds = {match["kind"] for match in matches}
    found = [match["kind"] for match in matches if _split(match, kinds) == "train"]
    return [] if {*found} & {*_KINDS} else [*dict.fromkeys(found)]


def _files(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each place to look in with each of its files.

    Raises UserError for a place whose files DVC does not see: it would miss changes.
    """
    for place in (folder, folder / "plain_text", folder / "data"):
        if place != folder and (place.is_symlink() or (place / ".dvc").exists()):
            what = "a link" if place.is_symlink() else "a DVC repository of its own"
            raise UserError(f"{place} is {what}, whose files DVC does not follow: name it as `path` itself")
        if place.is_dir():
            yield from ((place, path) for path in sorted(place.iterdir()) if not is_passing(Path(path.name)))


_Groups = dict[str, dict[tuple[str, str], dict[str, Path]]]
"""By split, by stem and kind, by the end of the name: the column of plain text, or the shard."""


def _grouped(folder: Path, columns: Sequence[str]) -> tuple[_Groups, list[str]]:
    """Return the files that match a layout, and the names of the others."""
    found: _Groups = defaultdict(lambda: defaultdict(dict))
    ignored: list[str] = []
    for place, path in _files(folder):
        match = _FILE.fullmatch(path.name)
        kind = match and _kind(match, columns)
        split = match and _split(match, columns)
        if not match or not kind or not split:
            if path.is_file() and not _UNREMARKABLE.fullmatch(path.name):
                ignored.append(path.relative_to(folder).as_posix())
            continue
        files = found[split][str(place.relative_to(folder) / match["stem"]), kind]
        end = f"{match['shard'] or ''}.{match['kind']}"
        if end in files:
            raise UserError(f"{place} has both {files[end].name} and {path.name}: keep one")
        files[end] = path
    return found, ignored


def _split(match: re.Match[str], columns: Collection[str]) -> str | None:
    """Return a file's split: for OPUS train, unless the name before its languages is one, as in `test.de-en.de`."""
    name, _, pair = match["stem"].rpartition(".")
    if pair in {"-".join(both) for both in permutations(columns, 2)} and match["kind"] in columns:
        return _split_of(name) or "train"
    return _split_of(match["stem"])


def _split_of(name: str) -> str | None:
    return ALIASES.get(name, name) if _SPLIT.fullmatch(name) else None


def _kind(match: re.Match[str], columns: Collection[str]) -> str | None:
    """Return `text`, or the extension of another kind; None for a file that is not part of the corpus."""
    kind = "text" if match["kind"] in columns else match["kind"] if match["kind"] in _KINDS else None
    return None if match["gz" if kind == "parquet" else "shard"] else kind


def _complete(stem: Path, kind: str, files: Mapping[str, Path], columns: Sequence[str]) -> list[Path]:
    """Return the files in order. Raises UserError when one is missing or extra."""
    first = _FILE.fullmatch(files[min(files)].name)
    expected = [f".{column}" for column in columns] if kind == "text" else [f".{kind}"]
    if first and first["shard"]:
        expected = [f"-{index:05d}-of-{first['shards']}.{kind}" for index in range(int(first["shards"]))]
    if missing := [end for end in expected if end not in files]:
        raise UserError(f"{stem}{missing[0]} is missing beside {files[min(files)].name}: the split is incomplete")
    if extra := sorted(files.keys() - {*expected}):
        raise UserError(f"{files[extra[0]]} does not belong to the split's other files: keep one set")
    return [files[end] for end in expected]


@dataclass(frozen=True)
class Columns:
    """Our columns, mapped to the corpus's: `name`, or `outer.inner` for a value within a mapping; all, if empty.

    A row with none of the names may have them within one mapping, as the Hub's `{"translation": {"de": ...}}`.
    """

    names: Mapping[str, str]
    optional: str | None = None
    """Our column that a table may lack."""

    @property
    def theirs(self) -> list[str]:
        """The corpus's names, in our order."""
        return list(self.names.values())

    def row(self, row: Row) -> Row:
        """Return a row of the corpus with our names."""
        if not self.names or (found := self._values(row)):
            return found if self.names else row
        nested = [found for value in row.values() if isinstance(value, dict) and (found := self._values(value))]
        return nested[0] if len(nested) == 1 else {}

    def _values(self, row: Row) -> Row:
        found = {}
        for ours, path in self.names.items():
            outer, _, inner = path.partition(".")
            if path in row:
                found[ours] = row[path]
            elif isinstance(nested := row.get(outer), dict) and inner in nested:
                found[ours] = nested[inner]
        return found

    def of_table(self, where: str, fields: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """Return the columns of a table to read.

        fields: all its columns, each with its inner names if it holds mappings. Raises UserError, which names the
        table by `where`, if it lacks one, or has one twice.
        """
        every = [name for name, _ in fields]
        if not self.names:
            return every
        found = self.row({name: dict.fromkeys(inner, name) if inner else name for name, inner in fields})
        if missing := [path for ours, path in self.names.items() if ours not in found and ours != self.optional]:
            raise UserError(
                f"{where} has no column `{missing[0]}` (it has: {', '.join(every)}): name it in `columns`, or in the"
                " header row of the table"
            )
        if twice := [path for path in self.theirs if every.count(path) > 1]:
            raise UserError(f"{where} has two columns `{twice[0]}`: rename one")
        return [name for name in dict.fromkeys(every) if name in found.values() or name in self.theirs]
