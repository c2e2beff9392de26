"""Joins tokens into normally written text."""

import re

from transformer.text.pretokenize import SPACE

_WIDE = "\u3000-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"  # of Chinese and Japanese, with punctuation
_ATTACH_LEFT = re.compile(r" ([.,;:!?%)\]}…]|n't\b|'(?:s|re|ve|ll|d|m)\b)")
_ATTACH_RIGHT = re.compile(r"([(\[{$€£]) ")
_HYPHEN = re.compile(r"(?<=\w) - (?=\w)")
_SPACES = re.compile(f"{SPACE}+ ?")
_UNSEPARATED = re.compile(f"(?<=[{_WIDE}]) (?=[{_WIDE}])")
_QUOTED = re.compile(r'" ([^"]*?) "')


def detokenize(tokens: str) -> str:
    """Join space-separated tokens, as spaCy's rules split German or English, into text.

    Punctuation and English contractions attach to their word, brackets and pairs of quotation marks to what they
    enclose, and hyphens to both sides. Letters of Chinese and Japanese join.
    """
    text = _UNSEPARATED.sub("", _SPACES.sub("", tokens))
    text = _ATTACH_LEFT.sub(r"\1", text)
    text = _ATTACH_RIGHT.sub(r"\1", text)
    text = _HYPHEN.sub("-", text)
    return _QUOTED.sub(r'"\1"', text)
