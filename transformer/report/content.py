"""Elements of a report page."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table; its first column contains the row headers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    long: bool = False
    """True to scroll on its own, with a text field that filters its rows."""
    folded: bool = False
    """True to show only the caption at first."""


@dataclass(frozen=True)
class Picture:
    """A figure, with alternative text and its numbers as a table."""

    alt: str
    svg: bytes
    numbers: Table | None = None


@dataclass(frozen=True)
class Section:
    """A part of the page with its own heading."""

    title: str
    text: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """The whole page."""

    title: str
    headline: str
    """Quality of the result, with its interval, in one line."""
    weaknesses: Sequence[str]
    """Weaknesses, one line each."""
    facts: Sequence[tuple[str, str]]
    """Facts about the run: name and value."""
    sections: Sequence[Section]
    folded: Sequence[Section]
    """Sections that show only their heading at first."""
    attention: str
    """Content of attention.json; empty for a model without attention."""
