"""What a text may be: one line; and what is taken for a word of it."""

import re

_SEPARATORS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_TOO_LONG = re.compile(r"\S{500}(?=\S)")


def one_line(text: str) -> str:
    """The text without white space at its ends, and each run of tabs or line separators inside as one space."""
    return _SEPARATORS.sub(" ", text.strip())


def cut_words(text: str) -> str:
    """The text with a space after every 500 characters that have none among them.

    spaCy's tokenizer and the trainers of BPE and WordPiece take a time that grows with the square of a word's length:
    hours for a line of a megabyte without a space.
    """
    return _TOO_LONG.sub(r"\g<0> ", text)
