"""Filling of gaps: encodes texts with [MASK], and decodes candidate words."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from tokenizers.models import WordPiece

from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import SPACE, Vocabulary
from transformer.families.language.decoding.interface import Floats
from transformer.families.language.nn.mask_token import MASK

_PREFIX = "##"
_WORD = ("qu", "x", "wjz")
"""Parts of a placeholder word (the middle is repeated as needed) whose end never overlaps its beginning, so that it is
found unambiguously between other letters."""
_SHOWN = 60  # characters of a text shown in an error message


class Filling(NamedTuple):
    """A text with its gaps filled."""

    text: str
    probability: float
    """Product of the words' probabilities, each with all other gaps masked."""
    words: tuple[str, ...]
    """The word in each gap."""


def encode_gaps(text: str, vocabulary: Vocabulary, split: Callable[[list[str]], list[str]], mask: int) -> Ids:
    """Return the ids of a text, from begin to end token, with `mask` for each [MASK]; split: the pre-tokenizer."""
    parts: list[Ids] = []
    for number, piece in enumerate(_around(text, split)):
        attached = number > 0 and piece[:1] not in ("", " ")
        before = _of_another_class(piece) if attached and _keeps_spaces(vocabulary) else ""
        skipped = len(vocabulary.encode([before])[0]) - 2 if before else 0
        inside: list[int] = []
        if attached and isinstance(vocabulary.tokenizer.model, WordPiece):
            inside, piece = _rest_of_word(piece, vocabulary)
        ids = vocabulary.encode([before + piece.strip()])[0]
        parts += [np.array(inside, dtype=np.int64), ids[1 + skipped : -1], np.array([mask])]
    return np.concatenate(([vocabulary.begin_id], *parts[:-1], [vocabulary.end_id])).astype(np.int64)


def _around(text: str, split: Callable[[list[str]], list[str]]) -> list[str]:
    """Return the pre-tokenized pieces around the gaps; a piece preceded by a space begins with one."""
    begin, middle, end = _WORD
    word = begin + middle + end  # a word, so that the pre-tokenizer splits its neighbours as usual
    while word in text.lower():
        middle += _WORD[1]
        word = begin + middle + end
    (whole,) = split([text.replace(MASK, word)])
    pieces, given = whole.split(word), text.split(MASK)
    if len(pieces) == len(given):
        return pieces
    # The pre-tokenizer split the placeholder, as Chinese ones do.
    return [" " * each.startswith(" ") + piece for each, piece in zip(given, split(given), strict=True)]


def _rest_of_word(piece: str, vocabulary: Vocabulary) -> tuple[list[int], str]:
    """Return the ##... pieces that continue the word of a gap, by WordPiece's longest match, and the remaining text."""
    tokenizer = vocabulary.tokenizer
    text = tokenizer.normalizer.normalize_str(f"a{piece}")  # a letter replaces the gap
    (word, (_, end)), *_ = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    ids, start = [], 1
    while start < len(word):
        found = ((stop, tokenizer.token_to_id(f"{_PREFIX}{word[start:stop]}")) for stop in range(len(word), start, -1))
        start, number = next((each for each in found if each[1] is not None), (len(word), None))
        if number is None:
            return [vocabulary.unknown_id], text[end:]
        ids.append(number)
    return ids, text[end:]


def _of_another_class(piece: str) -> str:
    """Return a character of another class, split off from a piece that must not get a leading space."""
    return "." if unicodedata.category(piece[0])[0] in "LMN" else "a"


def _keeps_spaces(vocabulary: Vocabulary) -> bool:
    return SPACE in vocabulary.tokenizer.get_vocab()


def around_gaps(ids: Ids, mask: int, positions: int, text: str) -> Ids:
    """Return the part of a `text` around its gaps that fits the context, between begin and end token.

    Raises UserError if the gaps are too far apart.
    """
    inner, size = ids[1:-1], positions - 2
    if len(inner) <= size:
        return ids
    gaps = np.flatnonzero(inner == mask)
    if gaps[-1] - gaps[0] >= size:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        apart = gaps[-1] - gaps[0] + 1
        raise UserError(f"in {shown!r} the gaps lie {apart} tokens apart, and the model reads {size}: fill fewer")
    start = min(max(int(gaps[0] + gaps[-1]) // 2 - size // 2, 0), len(inner) - size)
    start = min(max(start, int(gaps[-1]) - size + 1), int(gaps[0]))
    return np.concatenate((ids[:1], inner[start : start + size], ids[-1:]))


def fillings(text: str, log_probabilities: Floats, vocabulary: Vocabulary, count: int) -> list[Filling]:
    """Return the `count` most probable fillings of a text with M gaps; log_probabilities: (M, V), -inf if not allowed.

    Gaps are independent, so the most probable combinations consist of the most probable words of each gap.
    """
    found: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for row in log_probabilities:
        best = [token for token in np.argsort(-row, kind="stable")[:count] if np.isfinite(row[token])]
        longer = [(total + float(row[token]), (*ids, int(token))) for total, ids in found for token in best]
        found = sorted(longer, key=lambda each: -each[0])[:count]
    return [_filled(text, ids, float(np.exp(total)), vocabulary) for total, ids in found]


def _filled(text: str, ids: Sequence[int], probability: float, vocabulary: Vocabulary) -> Filling:
    names = vocabulary.entries(ids)
    words = tuple(name.replace(SPACE, "") for name in names)
    for name, word in zip(names, words, strict=True):
        start, _, rest = text.partition(MASK)
        if word.startswith(_PREFIX) or (_keeps_spaces(vocabulary) and not name.startswith(SPACE)):
            start = start.rstrip()
        text = start + word.removeprefix(_PREFIX) + rest
    return Filling(text, round(probability, 6), words)
