"""`transformer attention`: shows what a model attends to in one text."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from transformer.core.errors import UserError
from transformer.core.task import families
from transformer.reporting.attention_maps import Drawing, Weights, attention_figure
from transformer.reporting.style import plain, save

_SHADES = " ░▒▓█"
_LABEL = 16  # maximum characters of a token's label


def show_attention(opened: Callable[[], Any], arguments: Namespace) -> None:
    """Print or save one map of the model that `opened` loads, as the `arguments` ask. Raises UserError."""
    if arguments.output and arguments.output.suffix not in (".png", ".svg"):
        raise UserError(f"--output {arguments.output} must end in .png or .svg")
    model = opened()
    if not hasattr(model, "model"):
        raise UserError(f"{arguments.model} is a converted model, and attention maps need PyTorch: name the bundle")
    found = families()[model.family].attention_drawings(model, arguments.text, arguments.layers)
    drawings = {drawing.name: drawing for drawing in found}
    if not drawings:
        raise UserError(f"the model in {arguments.model} has no attention")
    name = arguments.map or next(iter(drawings))
    if name not in drawings:
        raise UserError(f"the model has no map {name!r}: --map is one of {', '.join(drawings)}")
    drawing = drawings[name]
    if arguments.output is None:
        for line in text_map(drawing):
            print(line)
        return
    save(arguments.output, drawing.title, lambda: attention_figure(drawing))
    print(f"{arguments.output}: {name}")


def text_map(drawing: Drawing) -> Iterator[str]:
    """Yield the lines of a drawing: panel by panel, one line per query, darker for larger weights.

    Columns are numbered, with a legend first; each line ends with the key of the largest weight.
    """
    yield from drawing.title.splitlines()
    keys = [plain(token, _LABEL) for token in drawing.keys.tokens]
    yield f"{drawing.keys.label}: " + "  ".join(f"{number} {key}" for number, key in enumerate(keys, start=1))
    queries = [plain(token, _LABEL) for token in drawing.queries.tokens]
    width = max(map(len, (*queries, "")))
    for name, weights in drawing.panels.items():
        yield ""
        yield name
        yield " " * width + "".join(f"{number:>3}" for number in range(1, len(keys) + 1))
        for query, row in zip(queries, weights, strict=True):
            best = int(row.argmax())
            yield f"{query:>{width}}{_shaded(row)}  {keys[best]} {row[best]:.2f}"


def _shaded(row: Weights) -> str:
    """Format one query's weights, three columns per key."""
    steps = [min(int(weight * len(_SHADES)), len(_SHADES) - 1) for weight in row]
    return "".join(" " + _SHADES[step] * 2 for step in steps)
