"""Style and output of all figures: the same figure gives the same bytes.

Text in SVG files stays text, so that it can be searched and read aloud. The user's matplotlibrc is ignored.
"""

import base64
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from transformer.core.files import atomic_write

FILE = "attention.json"
STEPS = 255


def packed(weights: NDArray[np.float32]) -> str:
    """Encode weights (T, S), from 0 to 1."""
    return base64.b64encode((weights * STEPS).round().astype(np.uint8).tobytes()).decode()


# Okabe and Ito's colours, distinguishable with any colour vision; each line has its own dash pattern too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
WEIGHTS = "Blues"
"""Colour map of weights: distinguishable by lightness alone."""
TITLE = 300
"""Maximum number of characters of a text in a title or a line."""
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "transformer",  # otherwise element ids are random
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.titlesize": 11,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def save(path: Path, title: str, draw: Callable[[], Figure]) -> None:
    """Draw a figure in the house style and write it, atomically; title: the description in its metadata.

    The extension of `path` is .svg or .png.
    """
    content = rendered(path.suffix.removeprefix("."), title, draw)
    with atomic_write(path) as stream:
        stream.write(content)


def rendered(kind: str, title: str, draw: Callable[[], Figure]) -> bytes:
    """Return the bytes of a figure in the house style; kind: svg or png."""
    unset = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    stream = BytesIO()
    with in_house_style():
        draw().savefig(stream, format=kind, metadata=unset | {"Title": title}, dpi=150)
    return stream.getvalue()


@contextmanager
def in_house_style() -> Iterator[None]:
    """Apply the house style to figures drawn inside the block."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        # Matplotlib's font is only used for the layout; the viewer renders text with its own fonts.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def plain(text: str, longest: int = 24) -> str:
    """Return `text` as a label: characters that are not allowed in XML or not printable become U+FFFD.

    Line ends and tabs become spaces. Spaces of every width and joiners stay: French, Persian, Japanese, Hindi and emoji
    use them.

    longest: maximum number of characters, since a corpus may contain a megabyte without a space.
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(map(_shown, cut))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs":
        return character
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
