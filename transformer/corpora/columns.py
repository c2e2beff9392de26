"""The names that a corpus has for the columns of a row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from transformer.corpora.corpus import Corpus, Fault, Part, Row

Available = Mapping[str, Sequence[str]]
"""The columns of a table, each with the names within it if it holds mappings."""


@dataclass(frozen=True)
class Columns:
    """Our columns and where the corpus has them: `name`, or `outer.inner` for a value within a mapping.

    A name that a row lacks may be within any mapping of the row, as in the Hub's `{"translation": {"de": ...}}`.
    """

    names: Mapping[str, str]

    @property
    def theirs(self) -> list[str]:
        """The corpus's names, in our order."""
        return list(self.names.values())

    def top(self, available: Available) -> list[str] | None:
        """The columns of a table to read for these names; None if one is missing."""
        found = [name for path in self.theirs if (name := _top(path, available)) is not None]
        return list(dict.fromkeys(found)) if len(found) == len(self.names) else None

    def missing(self, available: Available) -> str:
        """The first name that a table with these columns lacks."""
        return next(path for path in self.theirs if _top(path, available) is None)

    def renamed(self, corpus: Corpus) -> Corpus:
        """The corpus with our columns."""
        splits = {split: [self._part(part) for part in parts] for split, parts in corpus.splits.items()}
        return replace(corpus, splits=splits)

    def _part(self, part: Part) -> Part:
        return replace(part, read=partial(self._rows, part))

    def _rows(self, part: Part) -> Iterator[Row | Fault]:
        for row in part.read():
            yield row if isinstance(row, Fault) else self._row(row)

    def _row(self, row: Row) -> Row:
        found = {ours: _value(row, path) for ours, path in self.names.items()}
        return {ours: value for ours, value in found.items() if value is not _ABSENT}


_ABSENT = object()


def _top(path: str, available: Available) -> str | None:
    if path in available:
        return path
    outer, _, inner = path.partition(".")
    if inner and inner in available.get(outer, ()):
        return outer
    return next((name for name, within in available.items() if path in within), None)


def _value(row: Row, path: str) -> Any:
    if path in row:
        return row[path]
    outer, _, inner = path.partition(".")
    if inner and isinstance(nested := row.get(outer), dict):
        return nested.get(inner, _ABSENT)
    return next((value[path] for value in row.values() if isinstance(value, dict) and path in value), _ABSENT)
