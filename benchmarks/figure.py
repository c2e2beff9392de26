"""A part's tables as bar charts of the median, with the lowest and highest round; or as curves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer.figures.style import COLOURS, DASHES, save


def draw(path: Path, content: Mapping[str, Any]) -> None:
    """Write the figure for a part's JSON."""
    tables = content["tables"]
    title = f"{content['part']}, {content['machine']['cpu']}, {content['machine']['threads']} threads"

    def figure() -> Figure:
        drawn = Figure(figsize=(7, sum(_height(table) for table in tables)))
        panels = drawn.subplots(len(tables), squeeze=False, height_ratios=[_height(table) for table in tables])
        for axes, table in zip(panels[:, 0], tables, strict=True):
            (_curves if table["axis"] else _bars)(axes, table)
        drawn.suptitle(title)
        return drawn

    save(path, title, figure)


def _height(table: Mapping[str, Any]) -> float:
    """In inches."""
    return 3.0 if table["axis"] else 0.8 + 0.3 * len(table["rows"])


def _curves(axes: Axes, table: Mapping[str, Any]) -> None:
    for number, (name, row) in enumerate(table["rows"].items()):
        turn, place = divmod(number, len(COLOURS))
        dash = DASHES[(place + turn) % len(DASHES)]
        axes.plot(table["axis"], row["values"], color=COLOURS[place], linestyle=dash, label=name)
    axes.set_xlabel(table["axis_label"])
    axes.set_ylabel(table["unit"])
    axes.set_title(table["title"])
    axes.legend()


def _bars(axes: Axes, table: Mapping[str, Any]) -> None:
    rows = table["rows"]
    medians = [row["median"] for row in rows.values()]
    spread = [
        [row["median"] - min(row["values"]) for row in rows.values()],
        [max(row["values"]) - row["median"] for row in rows.values()],
    ]
    colours = [COLOURS[0] if name.startswith("ours") else COLOURS[5] for name in rows]
    places = range(len(rows))
    axes.barh(places, medians, xerr=spread, color=colours)
    axes.set_yticks(places, list(rows))
    axes.invert_yaxis()
    axes.set_xlabel(table["unit"])
    axes.set_title(table["title"])
    for place, row in zip(places, rows.values(), strict=True):
        axes.annotate(f" {row['ratio']:.3g} x", (max(row["values"]), place), va="center")
    axes.margins(x=0.12)
