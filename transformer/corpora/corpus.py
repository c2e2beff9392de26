"""A corpus as read from its source: splits that can be read repeatedly, and row validation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformer.core.errors import UserError
from transformer.text.clean import one_line

Row = dict[str, Any]
Check = Callable[[Row], Row]
"""Returns the row as it is to be stored; raises ValueError, saying what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a split, such as one file. Each call of `read` starts at its first row."""

    name: str
    read: Callable[[], Iterator[Row]]
    unit: str = "line"
    first: int = 1
    """The number of the first row, in units: a TSV file's rows start on line 2."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The contents of a source: the parts of each split, and their origin for provenance.json."""

    name: str
    splits: Mapping[str, Sequence[Part]]
    origin: Mapping[str, Any]

    def require(self, splits: Iterable[str]) -> None:
        """Raises UserError when one of these splits is missing."""
        if missing := [split for split in splits if split not in self.splits]:
            found = ", ".join(self.splits) or "none"
            raise UserError(
                f"{self.name} has no split `{missing[0]}` (it has: {found}): add it, or choose another `source`"
            )


def checked_rows(parts: Sequence[Part], check: Check) -> Iterator[Row]:
    """Stream the rows of a split, ready to be stored. Raises UserError that says where and why a row is invalid."""
    for part in parts:
        for number, row in enumerate(part.read(), start=part.first):
            try:
                yield check(row)
            except ValueError as error:
                raise UserError(
                    f"{part.name}, {part.unit} {number}: {error}; fix this row, or choose another `source`"
                ) from error


def clean_text(row: Row, column: str) -> str:
    """The text of one column, stripped and on one line: each run of tabs or line separators becomes one space.

    Raises ValueError when it is missing, not text, empty, or contains what cannot be stored (NUL, a lone surrogate).
    """
    if column not in row:
        raise ValueError(f"`{column}` is missing")
    text = row[column]
    if not isinstance(text, str):
        raise ValueError(f"`{column}` must be text, not {type(text).__name__}")
    text = one_line(text)
    if not text:
        raise ValueError(f"`{column}` is empty")
    if "\0" in text:
        raise ValueError(f"`{column}` has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"`{column}` has a lone surrogate, U+{ord(text[error.start]):04X}") from error
    return text
