"""Joins tokens into normally written text."""

import re

from transformer.text.pretokenize import SPACE

_WIDE = "\u3000-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"  # of Chinese and Japanese, with punctuation
_ATTACH_LEFT = re.compile(r" ([.,;:!?%)\]}…”]|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|’(?!\S)|(?<=s )'(?!\S))")
_ATTACH_RIGHT = re.compile(r"(?<!\S)([(\[{$€£#„‚“‘]) ")
_ATTACH_BOTH = re.compile(r"(?<=\w) ([-/]) (?=\w)")
_SPACES = re.compile(f"{SPACE}+ ?")
_UNSEPARATED = re.compile(f"(?<=[{_WIDE}]) (?=[{_WIDE}])")
_QUOTED = re.compile(r'" ([^"]*?) "')
_CLOSED = re.compile(r"(„[^“”]*) (“)|(‚[^‘]*) (‘)")  # what opens a quotation in English closes it in German


def detokenize(tokens: str) -> str:
    """Join space-separated tokens, as spaCy's rules split German or English, into text.

    Punctuation and English contractions attach to their word, brackets and quotation marks to what they enclose, and
    hyphens and slashes to both sides. Letters of Chinese and Japanese join.
    """
    text = _UNSEPARATED.sub("", _SPACES.sub("", tokens))
    text = _ATTACH_LEFT.sub(r"\1", text)
    for _ in range(2):  # a quotation in a quotation
        text = _CLOSED.sub(lambda found: "".join(filter(None, found.groups())), text)
    text = _ATTACH_RIGHT.sub(r"\1", text)
    text = _ATTACH_BOTH.sub(r"\1", text)
    return _QUOTED.sub(r'"\1"', text)
