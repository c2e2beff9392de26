"""The corpus's names for the columns of a row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from transformer.corpora.corpus import Corpus, Fault, Part, Row

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
