"""Detokenize: join tokens into normally written text."""

import re

from transformer.data.tokenization import SPACE

_WIDE = "\u3000-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"  # of Chinese and Japanese, with punctuation
_DECADE = re.compile(r"(?<!\S)' (?=\d\ds\b)")
_LONE = r" '(?!\w)"
_ATTACH_LEFT = re.compile(
    r" ([.,;:!?%)\]}…”]|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|’(?!\S)"
    rf"|(?<=[^'’\s]s )'(?!\S)(?!(?:(?!{_LONE}).)*[^s\s]{_LONE}))",  # no quotation mark, which another one would follow
    re.IGNORECASE,
)
_ATTACH_RIGHT = re.compile(r"(?<!\S)([(\[{$€£#„‚“‘]) ")
_ATTACH_BOTH = re.compile(r"(?<=\w) (-|/(?= [^\W\d_])|[\u00a0\u202f]) (?=\w)")
_SPACES = re.compile(f"{SPACE}+ ?")
_UNSEPARATED = re.compile(f"(?<=[{_WIDE}]) (?=[{_WIDE}])")
_QUOTED = re.compile(r'(?<![^\s(\[])" ([^"]*?) ?"')
_UNPAIRED = re.compile(r'^" (?=[^"]*$)|(?<=[.,!?…]) "(?= |$)| "$')
_GUILLEMETS = re.compile("([»«]) ([^»«]*?) ([»«])")  # German opens with »; Swiss German, with «
_SINGLE_QUOTED = re.compile(rf"(?<!\S)' ((?:(?!{_LONE}).)*?)(?:{_LONE}|(?<=s)'(?!\w))")
_EMPHASIS = re.compile(r"(?<!\S)([*_]) ([^*_]*?\S) \1(?!\w)")
_RUN = re.compile(r"(?<!\S)([*_])(?: \1)+(?!\S)")
_ONE_WORD = re.compile(
    r"\b(?:can (?=not\b)|gon (?=na\b)|got (?=ta\b)|y['’] (?=all\b)|\w+ (?=nt\b)"
    r"|(?:i|you|he|she|it|we|they|that|there|what|who|where|how|let) (?=(?:s|m|d|re|ve|ll)(?![\w.'’/-])))",
    re.IGNORECASE,
)
"""Words that spaCy's English rules split, with or without an apostrophe."""
_CLOSED = re.compile(r"(„[^“”]*) (“)|(‚[^‘]*) (‘)")  # English opens a quotation with the closing mark of German


def detokenize(tokens: str) -> str:
    """Detokenize space-separated tokens, as split by spaCy's rules for German or English.

    Punctuation and English contractions attach to their word, brackets and quotation marks to what they enclose, and
    hyphens and slashes to both sides. Letters of Chinese and Japanese join.
    """
    text = _UNSEPARATED.sub("", _SPACES.sub("", tokens))
    text = _ATTACH_LEFT.sub(r"\1", _DECADE.sub("'", text))
    for _ in range(2):  # a nested quotation
        text = _CLOSED.sub(lambda found: "".join(filter(None, found.groups())), text)
    text = _ATTACH_RIGHT.sub(r"\1", text)
    text = _ATTACH_BOTH.sub(r"\1", text)
    text = _ONE_WORD.sub(lambda found: found[0].rstrip(), text)
    text = _EMPHASIS.sub(r"\1\2\1", _RUN.sub(lambda found: found[0].replace(" ", ""), text))
    text = _SINGLE_QUOTED.sub(r"'\1'", _GUILLEMETS.sub(r"\1\2\3", text))
    return _UNPAIRED.sub('"', _QUOTED.sub(r'"\1"', text))
