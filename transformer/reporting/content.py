"""Content of the report page: sections, tables, pictures and charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from transformer.reporting.style import COLOURS, DASHES, WEIGHTS, plain, rendered


@dataclass(frozen=True)
class Marked:
    """A text, some parts of which are marked."""

    parts: Sequence[tuple[str, bool]]
    """Each part, and whether it is marked."""

    def __str__(self) -> str:
        return "".join(text for text, _ in self.parts)


Cell = str | Marked


@dataclass(frozen=True)
class Table:
    """A table; its first column contains the row headers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
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
    """A part of the page that shows only its heading at first."""

    title: str
    text: str = ""
    points: Sequence[str] = ()
    """Lines of a list."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Example:
    """A text with its answer."""

    title: str
    fields: Sequence[tuple[str, Cell]]
    """Name and text of each."""


@dataclass(frozen=True)
class Page:
    """The whole page; all but the sections and the attention is on the first screen."""

    title: str
    headline: str
    """Quality of the result, with its interval, in one line."""
    compared: Sequence[str]
    """Comparisons with other systems and results, one line each."""
    chart: Picture | None
    """How the result came about."""
    examples: Sequence[Example]
    sections: Sequence[Section]
    attention: str
    """Content of attention.json; empty for a model without attention."""


_SIZE = (6.0, 3.4)  # inches
_LARGE = 1000
_FEW = 20
"""Labels whose counts fit into their cells."""
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


def interval_chart(
    title: str,
    columns: Columns,
    *,
    group: str,
    value: str,
    label: str,
    x_label: str,
    count: str = "",
    zero: bool = False,
) -> Picture:
    """Plot one point per group with its interval, in the columns low and high, if they are there and not empty.

    label: the grouping; x_label: the points' quantity; count: column with the number of a group's items; zero: True
    for differences, of which those count whose interval excludes 0.
    """
    columns = {**dict.fromkeys(("low", "high"), [""] * len(columns[group])), **columns}
    counts = [f" (n = {number})" for number in columns[count]] if count else [""] * len(columns[group])
    groups = [name + number for name, number in zip(columns[group], counts, strict=True)]
    values, low, high = ([float(cell or "nan") for cell in columns[name]] for name in (value, "low", "high"))
    draw = partial(_intervals, title, groups, values, low, high, x_label, zero)
    if zero:
        clear = [name for name, start, end in zip(groups, low, high, strict=True) if start > 0 or end < 0]
        alt = f"{title}. The interval excludes 0 for: {', '.join(clear) or 'none'}."
    else:
        alt = f"{title}. " + "; ".join(f"{n}: {_label(v)}" for n, v in zip(groups, values, strict=True)) + "."
    names = {group: label, value: x_label, "low": "low", "high": "high", **({count: count} if count else {})}
    numbers = Table(title, [*names.values()], _cells([columns[name] for name in names]))
    return Picture(alt, rendered("svg", title, draw), numbers)


def confusion_chart(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Picture:
    """Show how often each label (row) was predicted as each (column), coloured by the share of the row."""
    rows = [[f"actually {label}", *map(str, row)] for label, row in zip(labels, counts, strict=True)]
    numbers = Table(title, ["", *(f"predicted {label}" for label in labels)], rows)
    cells = [
        f"{count:,} {actual} as {predicted}"
        for actual, row in zip(labels, counts, strict=True)
        for predicted, count in zip(labels, row, strict=True)
    ]
    alt = f"{title}. {'; '.join(cells)}." if len(labels) <= _FEW else f"{title}, of {len(labels)} labels."
    return Picture(alt, rendered("svg", title, partial(_confusion, title, labels, counts)), numbers)


def reliability_chart(title: str, columns: Columns, *, x_label: str, y_label: str, count: str) -> Picture:
    """Plot the share of true claims over their probability, with intervals, above the number of claims.

    columns: `probability`, `positive`, `low` and `high` of each bin, and the column `count`.
    """
    points = {name: [float(cell) for cell in cells] for name, cells in columns.items() if name != "calibrated"}
    pairs = zip(points["probability"], points["positive"], columns[count], strict=True)
    alt = f"{title}. " + "; ".join(f"{_label(x)} predicted, {_label(y)} true (n = {n})" for x, y, n in pairs) + "."
    names = {"probability": x_label, "positive": y_label, "low": "low", "high": "high", count: count}
    numbers = Table(title, [*names.values()], _cells([columns[name] for name in names]))
    return Picture(alt, rendered("svg", title, partial(_reliability, title, points, x_label, y_label, count)), numbers)


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
    zero: bool,
) -> Figure:
    figure = Figure(figsize=(_SIZE[0], 1.2 + 0.3 * len(groups)))
    axes = figure.subplots()
    axes.hlines(range(len(groups)), low, high, color=COLOURS[0], linewidth=2)
    axes.plot(values, range(len(groups)), "o", color=COLOURS[0], markersize=5)
    if zero:
        axes.axvline(0, color="0.6", linewidth=0.8)
    for place, number in enumerate(values):
        if not zero:
            axes.annotate(_label(number), (number, place), (0, 5), textcoords="offset points", ha="center", fontsize=8)
    axes.set_yticks(range(len(groups)), [plain(group, 60) for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.7)
    axes.margins(x=0.08)
    axes.set_title(title)
    axes.set_xlabel(x_label)
    return figure


def _confusion(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Figure:
    matrix = np.array(counts, dtype=np.float64)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    side = max(2.2, min(0.6 * len(labels), 9.0))
    figure = Figure(figsize=(max(_SIZE[0], side + 2.2), side + 1.2))
    axes = figure.subplots()
    image = axes.imshow(shares, cmap=WEIGHTS, vmin=0, vmax=1)
    names = [plain(label) for label in labels]
    axes.set_xticks(range(len(labels)), names, rotation=0 if len(labels) <= 3 else 90, parse_math=False)
    axes.set_yticks(range(len(labels)), names, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(labels) <= _FEW:
        for row, column in np.ndindex(matrix.shape):
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{int(matrix[row, column]):,}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual")
    axes.set_title(title)
    figure.colorbar(image, ax=axes, label="share of the row", shrink=0.8)
    return figure


def _reliability(title: str, points: Mapping[str, Sequence[float]], x_label: str, y_label: str, count: str) -> Figure:
    figure = Figure(figsize=(_SIZE[0], 4.6))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    x = points["probability"]
    upper.plot((0, 1), (0, 1), color="0.6", linestyle="--", linewidth=1, label="perfectly calibrated")
    upper.vlines(x, points["low"], points["high"], color=COLOURS[0], linewidth=2)
    upper.plot(x, points["positive"], "o", color=COLOURS[0], markersize=5, label="as predicted, 95 % interval")
    upper.set_ylim(-0.02, 1.02)
    upper.set_ylabel(y_label)
    upper.set_title(title)
    upper.legend()
    bars = lower.bar(x, points[count], 0.03, color=COLOURS[0])
    lower.bar_label(bars, fmt="{:,.0f}", fontsize=8)
    lower.margins(y=0.3)
    lower.set_xlabel(x_label)
    lower.set_ylabel(count)
    return figure
