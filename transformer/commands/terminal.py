"""Attention maps as text, for a terminal."""

from collections.abc import Iterator

from transformer.figures.attention import Drawing, Weights
from transformer.figures.style import plain

_SHADES = " ░▒▓█"
_LABEL = 16  # maximum characters of a token's label


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
    """One query's weights, three columns per key."""
    steps = [min(int(weight * len(_SHADES)), len(_SHADES) - 1) for weight in row]
    return "".join(" " + _SHADES[step] * 2 for step in steps)
