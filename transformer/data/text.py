"""Cleaning of text, and what depends on its script."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from unicodedata import normalize

_SEPARATORS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
LONGEST_WORD = 500
_TOO_LONG = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")


def one_line(text: str) -> str:
    """Strip a text and replace each run of tabs or line separators by one space."""
    return _SEPARATORS.sub(" ", text.strip())


def composed(text: str) -> str:
    """Return a text in Unicode's normal form NFC: characters written in different ways become the same ones."""
    return normalize("NFC", text)


_IGNORABLE = (  # control characters, and Unicode's Default_Ignorable_Code_Point without the joiners
    "\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(
    f"[{_IGNORABLE}]|(?<![\u0600-\u1aff\u2190-\U0001ffff])[\u200c\u200d]|[\u200c\u200d](?!\\w|[\u2190-\U0001ffff])"
)


def visible(text: str) -> str:
    """Return what can be seen of a text, in NFC: without characters that have no glyph, with single spaces.

    A joiner stays between letters that it shapes, and within an emoji.
    """
    return composed(" ".join(_UNSEEN.sub("", text).split()))


_TURKIC = str.maketrans({"I": "\u0131", "\u0130": "i"})
_DOTTED = re.compile("([IJ]\u0328?)(?=[\u0300\u0301\u0303])")  # decomposed: I, J or Į before an accent


def lowercased(text: str, language: str | None) -> str:
    """Return a text of a language in lowercase, in NFC, by the rules of Unicode's SpecialCasing.txt.

    Turkish and Azeri have a dotted and a dotless i, in Lithuanian an i keeps its dot below an accent, and a Greek sigma
    is another one at the end of a word. language: its code, such as `tr` or `tr-CY`; None if it is unknown.
    """
    code = re.split("[-_]", language or "")[0].lower()
    if code in ("tr", "az"):
        text = composed(text).translate(_TURKIC)
    if code == "lt":
        text = _DOTTED.sub("\\1\u0307", normalize("NFD", text))
    return composed(text.lower())


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
