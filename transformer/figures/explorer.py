"""Attention maps of some texts as JSON; the report shows one text, layer and head of them at a time."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformer.core.files import atomic_write, json_bytes
from transformer.figures.attention import Axis, Drawing
from transformer.figures.packed import FILE, packed
from transformer.figures.style import TITLE, plain

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
