"""A page as HTML: styles, script and figures inside, nothing loaded from anywhere."""

import base64
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from transformer.reporting.packed import STEPS
from transformer.reporting.page.content import Page

_FOLDER = Path(__file__).parent / "template"
_LONGEST_CELL = 20_000  # characters: IMDB's longest review has 13,704, a corpus may have a megabyte in a line


def render(page: Page) -> str:
    """The page as one HTML document. All its text is escaped."""
    # In a script element the parser looks for nothing but `</script` and `<!--`.
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
    environment.globals["longest_cell"] = _LONGEST_CELL
    environment.globals["style"] = (_FOLDER / "style.css").read_text(encoding="utf-8")
    environment.globals["script"] = (_FOLDER / "script.js").read_text(encoding="utf-8")
    return environment.get_template("page.html")


def _data_uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
