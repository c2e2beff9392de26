"""How all figures look, and how they become files: the same figure gives the same bytes.

SVG whose text stays text, so that it can be searched, and read aloud. A person's matplotlibrc has no say.
"""

import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from transformer.core.files import atomic_write

# Okabe and Ito's colours, told apart with every kind of colour vision; each line has a dash pattern of its own too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
WEIGHTS = "Blues"
"""The colour map of weights: lightness alone tells them apart."""
TITLE = 300
"""Characters of a text that a title or a line shows."""
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "transformer",  # otherwise the ids of elements are random
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
    """Draw a figure in the house style and write it, atomically; title: what an image reader says it shows.

    The ending of `path` is .svg or .png.
    """
    content = rendered(path.suffix.removeprefix("."), title, draw)
    with atomic_write(path) as stream:
        stream.write(content)


def rendered(kind: str, title: str, draw: Callable[[], Figure]) -> bytes:
    """The file of a figure in the house style; kind: svg or png."""
    unset = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    stream = BytesIO()
    with in_house_style():
        draw().savefig(stream, format=kind, metadata=unset | {"Title": title}, dpi=150)
    return stream.getvalue()


@contextmanager
def in_house_style() -> Iterator[None]:
    """Figures that are drawn inside the block look as all do."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        # Only the layout asks matplotlib's font; the viewer's own fonts show the text.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def plain(text: str, longest: int = 24) -> str:
    """`text` as a label: what XML does not take, and what prints nothing, becomes U+FFFD.

    Spaces of every width and joiners stay: French, Persian, Japanese, Hindi and emoji are written with them.

    longest: characters of it at most, since a corpus may have a megabyte without a space.
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(character if _shown(character) else "\N{REPLACEMENT CHARACTER}" for character in cut)


def _shown(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
