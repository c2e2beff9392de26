"""Content of the report page: sections, tables, pictures and charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from transformer.reporting.style import COLOURS, DASHES, plain, rendered


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


_SIZE = (6.0, 3.4)  # inches
_LARGE = 1000
Columns = Mapping[str, Sequence[str]]
"""Cells of a table by column, all of the same length."""


def line_chart(
    title: str, columns: Columns, *, x: str, ys: Mapping[str, str], y_label: str, x_label: str = ""
) -> Picture:
    """Plot lines over the column `x`; ys: each line's label by its column. Empty cells are skipped."""
    shown = {column: label for column, label in ys.items() if column in columns}
    lines = {label: _points(columns[x], columns[column]) for column, label in shown.items()}
    draw = partial(_lines, title, lines, x_label or x, y_label)
    alt = f"{title}. " + " ".join(f"{label}: {_course(points)}." for label, points in lines.items())
    numbers = Table(title, [x_label or x, *shown.values()], _cells([columns[x], *(columns[name] for name in shown)]))
    return Picture(alt, rendered("svg", title, draw), numbers)


def bar_chart(title: str, columns: Columns, *, group: str, value: str, count: str, label: str, x_label: str) -> Picture:
    """Plot one bar per group, with its number of texts; label: the grouping; x_label: the bars' quantity."""
    groups = [f"{name} (n = {number})" for name, number in zip(columns[group], columns[count], strict=True)]
    values = [float(cell) for cell in columns[value]]
    draw = partial(_bars, f"{title} ({label})", groups, values, x_label)
    alt = (
        f"{title}. " + "; ".join(f"{name}: {_label(number)}" for name, number in zip(groups, values, strict=True)) + "."
    )
    numbers = Table(title, [label, x_label, count], _cells([columns[group], columns[value], columns[count]]))
    return Picture(alt, rendered("svg", title, draw), numbers)


def interval_chart(title: str, columns: Columns, *, group: str, value: str, label: str, x_label: str) -> Picture:
    """Plot one point per group with its interval, in the columns low and high; label, x_label: as in `bar_chart`."""
    groups = list(columns[group])
    values, low, high = ([float(cell or "nan") for cell in columns[name]] for name in (value, "low", "high"))
    draw = partial(_intervals, title, groups, values, low, high, x_label)
    clear = [name for name, start, end in zip(groups, low, high, strict=True) if start > 0 or end < 0]
    alt = f"{title}. The interval excludes 0 for: {', '.join(clear) or 'none'}."
    names = (group, value, "low", "high")
    numbers = Table(title, [label, x_label, "low", "high"], _cells([columns[name] for name in names]))
    return Picture(alt, rendered("svg", title, draw), numbers)


def _label(number: float) -> str:
    """Format with three digits, but as 1 or 100 only if exact, and without rounding off thousands."""
    if abs(number) >= _LARGE:
        return f"{number:,.0f}"
    text = f"{number:.3g}"
    return text if float(text) not in (1, 100) or float(text) == number else f"{number:.5g}"


def _points(xs: Sequence[str], ys: Sequence[str]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(xs, ys, strict=True) if x and y]


def _course(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return "no values"
    (first, start), (last, end) = points[0], points[-1]
    return f"from {_label(start)} at {_label(first)} to {_label(end)} at {_label(last)}"


def _cells(columns: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[_short(cell) for cell in row] for row in zip(*columns, strict=True)]


def _short(cell: str) -> str:
    try:
        return cell if cell.isdecimal() else f"{float(cell):.5g}"  # a count is exact
    except ValueError:
        return cell


def _lines(title: str, lines: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> Figure:
    figure = Figure(figsize=_SIZE)
    axes = figure.subplots()
    for index, (label, points) in enumerate(lines.items()):
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=COLOURS[index % len(COLOURS)],
            linestyle=DASHES[index % len(DASHES)],
            marker="o" if len(points) == 1 else "",  # a line does not show a single epoch
            label=label,
        )
    axes.set_title(title)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if all(x.is_integer() for points in lines.values() for x, _ in points):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # no half epochs
    if len(lines) > 1:
        axes.legend()
    return figure


def _intervals(
    title: str,
    groups: Sequence[str],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    x_label: str,
) -> Figure:
    figure = Figure(figsize=(_SIZE[0], 1.2 + 0.25 * len(groups)))
    axes = figure.subplots()
    axes.hlines(range(len(groups)), low, high, color=COLOURS[0], linewidth=2)
    axes.plot(values, range(len(groups)), "o", color=COLOURS[0], markersize=4)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_yticks(range(len(groups)), [plain(group, 60) for group in groups])
    axes.invert_yaxis()
    axes.set_title(title)
    axes.set_xlabel(x_label)
    return figure


def _bars(title: str, groups: Sequence[str], values: Sequence[float], x_label: str) -> Figure:
    figure = Figure(figsize=(_SIZE[0], 1.2 + 0.35 * len(groups)))
    axes = figure.subplots()
    bars = axes.barh(range(len(groups)), values, color=COLOURS[0])
    axes.bar_label(bars, fmt=_label, padding=4)
    axes.set_yticks(range(len(groups)), [plain(group) for group in groups])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_title(title)
    axes.set_xlabel(x_label)
    return figure
