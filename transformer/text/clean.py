"""What a text may be: one line."""

import re

_SEPARATORS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


def one_line(text: str) -> str:
    """The text without white space at its ends, and each run of tabs or line separators inside as one space."""
    return _SEPARATORS.sub(" ", text.strip())
