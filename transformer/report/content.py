"""The elements of a report page."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table; its first column contains the row headers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    long: bool = False
    """Whether it scrolls by itself, below a field that filters its rows by a word."""
    folded: bool = False
    """Whether only the caption is shown at first."""


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
    """How good the result is, with its interval, in one line."""
    weaknesses: Sequence[str]
    """Where it fails, one line each."""
    facts: Sequence[tuple[str, str]]
    """What was run: a name and its value."""
    sections: Sequence[Section]
    folded: Sequence[Section]
    """Sections of which only the heading is shown at first."""
    attention: str
    """The content of attention.json; empty for a model without attention."""
