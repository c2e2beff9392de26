"""Attention maps: their figures, and their file for the report's explorer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from pydantic import Field, field_validator

from transformer.core.files import atomic_write, json_bytes, read_json, read_rows, read_table
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Section
from transformer.nn.attention_weights import Maps
from transformer.reporting.style import FILE, TITLE, WEIGHTS, packed, plain

Weights = NDArray[np.float32]
_CELL = 0.17  # inches, room for a token's letters
_TITLE_LETTERS = 11  # per inch
# What fits into the margins, and the inches of what exceeds it: lines of the title, letters of a key.
_TITLE_LINES, _LINE = 2, 0.19
_KEY_LETTERS, _LETTER = 12, 0.08
_LEAST, _MOST = 1.6, 11.0  # inches: the narrowest panel, the widest row of panels


@dataclass(frozen=True)
class Axis:
    """One axis of a heat map."""

    label: str
    tokens: Sequence[str]


class Drawing(NamedTuple):
    """The content of a heat map figure, and its file name."""

    name: str
    title: str
    panels: dict[str, Weights]
    """Weights (T, S) by title."""
    queries: Axis
    keys: Axis


def chosen_layers(maps: Maps, *, layers: str) -> Maps:
    """Return the map of the last module (`last`), or all maps (`all`)."""
    return maps if layers == "all" else dict(list(maps.items())[-1:])


def head_panels(maps: Maps) -> dict[str, Weights]:
    """Make one panel (T, S) per head, by its title; maps: (1, H, T, S) per module."""
    panels = {}
    for name, weights in maps.items():
        for head, panel in enumerate(weights[0].float().cpu().numpy(), start=1):
            panels[", ".join((*_layer(name), f"head {head}"))] = panel
    return panels


def _layer(name: str) -> list[str]:
    return [f"layer {int(part) + 1}" for part in name.split(".") if part.isdigit()]


def attention_figure(drawing: Drawing) -> Figure:
    """Draw one heat map per panel, on a common colour scale from 0 to the figure's largest weight.

    A row shows what one query attends to: its weights sum to 1, or to less where a text has more tokens than are shown.
    """
    panels, queries, keys = drawing.panels, drawing.queries, drawing.keys
    width = max(_LEAST, _CELL * len(keys.tokens))
    height = max(_LEAST / 2, _CELL * len(queries.tokens))
    columns = min(max(int(_MOST / width), 1), len(panels))
    rows = -(-len(panels) // columns)
    columns = -(-len(panels) // rows)  # 4 panels: 2 + 2 rather than 3 + 1
    inches = columns * (width + 0.15) + 2.0
    title = _wrapped(drawing.title, inches)
    letters = max(len(plain(token)) for token in keys.tokens)
    extra = _LINE * max(title.count("\n") + 1 - _TITLE_LINES, 0) + _LETTER * max(letters - _KEY_LETTERS, 0)
    figure = Figure(figsize=(inches, rows * (height + 0.3) + 1.6 + extra))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    largest = max(float(panel.max()) for panel in panels.values())
    for index, (axes, (name, weights)) in enumerate(zip(grid, panels.items(), strict=False)):
        image = _panel(axes, name, weights, largest)
        _label(axes, queries if index % columns == 0 else None, keys if index + columns >= len(panels) else None)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(title, parse_math=False)
    figure.colorbar(image, ax=grid, label="attention weight", shrink=0.8, aspect=25)
    return figure


def _wrapped(title: str, inches: float) -> str:
    letters = int(inches * _TITLE_LETTERS)
    return "\n".join(wrapped for line in title.splitlines() for wrapped in wrap(line, letters))


def _panel(axes: Axes, name: str, weights: Weights, largest: float) -> AxesImage:
    axes.set_title(name)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes.imshow(weights, cmap=WEIGHTS, vmin=0.0, vmax=largest, aspect="auto", interpolation="none")


def _label(axes: Axes, queries: Axis | None, keys: Axis | None) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    if keys is not None:
        labels = [plain(token) for token in keys.tokens]
        axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8, parse_math=False)
        axes.set_xlabel(keys.label)
    if queries is not None:
        labels = [plain(token) for token in queries.tokens]
        axes.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
        axes.set_ylabel(queries.label)


_TITLE = 300
"""Maximum characters of a map's title, which tells what it omits of the text."""


def write_explorer(folder: Path, texts: Iterable[tuple[str, Sequence[Drawing]]]) -> None:
    """Write each text, by its title, with its maps. A model without attention has no such file."""
    content = [{"title": plain(title, TITLE), "maps": [_map(each) for each in drawings]} for title, drawings in texts]
    if any(text["maps"] for text in content):
        with atomic_write(folder / FILE) as stream:
            stream.write(json_bytes({"texts": content}, indent=None))


def _map(drawing: Drawing) -> dict[str, Any]:
    panels = [{"title": title, "weights": packed(weights)} for title, weights in drawing.panels.items()]
    named = {"name": drawing.name.replace("_", " "), "title": plain(drawing.title, _TITLE)}
    return {**named, "queries": _axis(drawing.queries), "keys": _axis(drawing.keys), "panels": panels}


def _axis(axis: Axis) -> dict[str, Any]:
    return {"label": axis.label, "tokens": [plain(token) for token in axis.tokens]}


class FiguresParams(Section):
    """`figures` of a task."""

    sentences: list[str] | None = Field(max_length=20)
    """Raw texts whose attention is drawn; null takes the sample corpus's examples, or the first 3 of validation of any
    other corpus, as does []."""
    layers: Literal["last", "all"]
    """The layers whose heads are drawn."""

    @field_validator("sentences")
    @classmethod
    def _no_empty_text(cls, sentences: list[str] | None) -> list[str] | None:
        if not all(sentence.strip() for sentence in sentences or ()):
            raise ValueError("a sentence is empty: write one, or take its line out")
        return sentences


_FIRST = 3  # validation texts by default


def sentences(task: Task, params: FiguresParams, paths: Paths, column: str) -> Sequence[str]:
    """Return the chosen raw texts, the examples or the first of validation; column: their column in the corpus."""
    of_sample = read_json(paths.corpus / "provenance.json")["source"] == "sample"
    if params.sentences is None and of_sample and column in task.examples:
        return task.examples[column]
    rows = islice(read_rows(paths.corpus / "validation.jsonl"), _FIRST)
    return params.sentences or [row[column] for row in rows]


def updates(history: Path, epochs: int) -> int:
    """Estimate the updates of the whole training; after early stopping, extrapolate from the last epoch."""
    steps = [0, *(int(float(row["step"])) for row in read_table(history))]
    return steps[-1] + (epochs + 1 - len(steps)) * (steps[-1] - steps[-2])
