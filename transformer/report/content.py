"""What a report's page is made of."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table; its first column heads the rows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    long: bool = False
    """Whether it scrolls by itself, below a field that hides the rows without a word."""
    folded: bool = False
    """Whether only the caption is shown at first."""


@dataclass(frozen=True)
class Picture:
    """A figure with the words for those who do not see it, and the numbers behind it."""

    alt: str
    svg: bytes
    numbers: Table | None = None


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading of its own."""

    title: str
    text: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """All of a report."""

    title: str
    row_key: str
    made_from: str
    """The digest of all that it shows."""
    headline: str
    """How good the result is, and how sure that is, in one line."""
    weaknesses: Sequence[str]
    """Where it fails, one line each."""
    facts: Sequence[tuple[str, str]]
    """What was run: a name and its value."""
    sections: Sequence[Section]
    folded: Sequence[Section]
    """Those of which only the heading is shown at first."""
    attention: str
    """The content of attention.json; empty for a model without attention."""
