"""What a text may be: one line; and what is taken for a word of it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SEPARATORS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_TOO_LONG = re.compile(r"\S{500}(?=\S)")


def one_line(text: str) -> str:
    """The text without white space at its ends, and each run of tabs or line separators inside as one space."""
    return _SEPARATORS.sub(" ", text.strip())


def given_texts(texts: Iterable[Any]) -> list[str]:
    """The texts that a caller gives, in any iterable but a text itself; half of a surrogate pair becomes U+FFFD.

    Raises TypeError, one line, for anything else: a missing text must not be answered as the word "None".
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"a list of texts is needed, such as ['one text'], not {type(texts).__name__}")
    given = list(texts)
    for number, text in enumerate(given, start=1):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a str, not {type(text).__name__}: leave it out, or give ''")
    return [_without_surrogates(text) for text in given]


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_words(text: str) -> str:
    """The text with a space after every 500 characters that have none among them.

    spaCy's tokenizer and the trainers of BPE and WordPiece take a time that grows with the square of a word's length:
    hours for a line of a megabyte without a space.
    """
    return _TOO_LONG.sub(r"\g<0> ", text)
