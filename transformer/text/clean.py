"""Text normalisation: one line per text, valid Unicode, bounded word length."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SEPARATORS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
LONGEST_WORD = 500
_TOO_LONG = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")


def one_line(text: str) -> str:
    """Strip a text and replace each run of tabs or line separators by one space."""
    return _SEPARATORS.sub(" ", text.strip())


def given_texts(texts: Iterable[Any]) -> list[str]:
    """Return a caller's texts as a list, from any iterable except a str; lone surrogates become U+FFFD.

    Raises TypeError for anything else: a missing text must not be processed as the word "None".
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"expected a list of texts, such as ['one text'], not {type(texts).__name__}")
    given = list(texts)
    for number, text in enumerate(given, start=1):
        if not isinstance(text, str):
            advice = "leave it out, or pass ''" if text is None or text != text else "pass it as a str"
            raise TypeError(f"text {number} must be a str, not {type(text).__name__}: {advice}")
    return [_without_surrogates(text) for text in given]


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_words(text: str) -> str:
    """Insert a space after every 500 characters without one.

    spaCy's tokenizer and the BPE and WordPiece trainers are quadratic in the length of a word: hours for a line of a
    megabyte without a space.
    """
    return _TOO_LONG.sub(r"\g<0> ", text)
