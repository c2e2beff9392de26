"""Render a page as self-contained HTML: styles, script and figures are inlined, nothing is loaded."""

import base64
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from transformer.figures.packed import STEPS
from transformer.report.content import Page

_FOLDER = Path(__file__).parent / "template"
_UNBROKEN = 30  # characters of a word between two possible line breaks
_WORD = re.compile(rf"(\S{{{_UNBROKEN + 1},}})")
_LONGEST_CELL = 20_000  # characters: IMDB's longest review has 13,704, but a corpus may have a megabyte in a line


def render(page: Page) -> str:
    """Render the page as one HTML document. All its text is escaped."""
    # Inside a script element, only `</script` and `<!--` are special to the parser.
    attention = page.attention.replace("<", r"\u003c")
    return _template().render(page=page, attention=attention, steps=STEPS)


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    environment.filters["breakable"] = _breakable
    environment.globals["longest_cell"] = _LONGEST_CELL
    environment.globals["style"] = (_FOLDER / "style.css").read_text(encoding="utf-8")
    environment.globals["script"] = (_FOLDER / "script.js").read_text(encoding="utf-8")
    return environment.get_template("page.html")


def _breakable(text: str) -> Markup:
    """Escape text and allow line breaks inside very long words, such as addresses.

    Otherwise one such word makes its column as wide as itself and pushes the other columns out of sight.
    """
    words = _WORD.split(text)  # overlong words are at odd indices
    parts = [[word[at : at + _UNBROKEN] for at in range(0, len(word), _UNBROKEN)] for word in words[1::2]]
    broken = [Markup("<wbr>").join(pieces) for pieces in parts]
    return Markup("").join(part for pair in zip_longest(words[::2], broken, fillvalue="") for part in pair)


def _data_uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
