"""Scripts that do not separate words."""

import re

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"
SOUTH_EAST = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Tibetan; Burmese; Khmer
"""Scripts that do not separate words, as ranges between the brackets of a regular expression."""
UNSEPARATED = f"{HAN}{KANA}{SOUTH_EAST}"
_LETTER = re.compile(f"[{UNSEPARATED}]")


def separates_words(text: str) -> bool:
    """True if the text has no letter of a script that does not separate words."""
    return _LETTER.search(text) is None


def written_words(text: str) -> tuple[list[str], str]:
    """Return the words of a text and their separator; its characters if its script does not separate words."""
    words = text.split()
    return (words, " ") if separates_words(text) else ([*" ".join(words)], "")
