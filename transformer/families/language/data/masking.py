"""Masking for masked language models: which tokens to predict, and their replacements (Devlin et al. 2019, 3.1)."""

import json
import unicodedata
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import SPACE, Vocabulary
from transformer.families.language.nn.mask_token import mask_id

_SHOWN, _RANDOM = 0.1, 0.1  # of the chosen tokens: kept, replaced by a random one; the rest become [MASK]
_PREFIX = "##"
_UNSEPARATED = (
    *("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER"),
)
"""Prefixes of the Unicode letter names of scripts without word separators, those of `evaluation/scripts.py`."""


class Masked(NamedTuple):
    """A window after masking."""

    given: Ids
    """(T,): input ids."""
    hidden: NDArray[np.bool_]
    """(T,): True on the tokens to predict."""


class Masking:
    """Masks random tokens: of those chosen, 80 % become [MASK], 10 % a random token and 10 % stay.

    A window's mask depends only on the seed, the epoch and the window's number.
    """

    def __init__(self, vocabulary: Vocabulary, *, share: float, whole_words: bool, seed: int) -> None:
        """share: of the tokens between begin and end; whole_words: mask all pieces of a word or none.

        Raises UserError if the vocabulary has only special tokens.
        """
        self._share, self._seed, self._mask = share, seed, mask_id(vocabulary)
        special = {*_special_ids(vocabulary), self._mask}
        self._ordinary = np.array([number for number in range(vocabulary.size) if number not in special])
        if not len(self._ordinary):
            raise UserError("the vocabulary has special tokens alone: lower vocab.min_frequency")
        self._continues = continuations(vocabulary) if whole_words else None

    def __call__(self, window: Ids, epoch: int, number: int) -> Masked:
        """Mask at least one token of a window (T,), never its begin and end token."""
        draw = np.random.default_rng((self._seed, epoch, number))
        hidden = np.zeros(len(window), dtype=bool)
        hidden[1:-1] = self._chosen(window[1:-1], draw)
        fate = draw.random(len(window))
        given = np.where(hidden & (fate >= _SHOWN + _RANDOM), self._mask, window)
        swapped = hidden & (fate < _RANDOM)
        given[swapped] = draw.choice(self._ordinary, int(swapped.sum()))
        return Masked(given, hidden)

    def _chosen(self, tokens: Ids, draw: np.random.Generator) -> NDArray[np.bool_]:
        """Choose tokens at random, or whole words until they reach the share, rounded to the nearest word."""
        wanted = max(1, round(self._share * len(tokens)))
        if self._continues is None:
            ranks: NDArray[np.int64] = draw.permutation(len(tokens))
            return ranks < wanted
        words = np.cumsum(np.concatenate(([False], ~self._continues[tokens[1:]])))  # (T,) the word of each token
        sizes = np.bincount(words)
        order = draw.permutation(len(sizes))
        taken = np.zeros(len(sizes), dtype=bool)
        before = np.cumsum(sizes[order]) - sizes[order]
        taken[order] = (before + sizes[order] / 2 < wanted) | (before == 0)
        chosen: NDArray[np.bool_] = taken[words]
        return chosen


def continuations(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return a mask (V,), True for pieces that continue a word: `##ing`, or a letter, mark or digit not after a space.

    A piece of a script without word separators is its own word, otherwise whole clauses would be one.
    """
    names = [*vocabulary.entries(range(vocabulary.size))]
    kind: dict[str, Any] = json.loads(vocabulary.tokenizer.to_str())["model"]
    if kind["type"] == "WordPiece":
        return np.array([name.startswith(_PREFIX) and _joins(name[len(_PREFIX) :]) for name in names])
    if kind["type"] == "WordLevel":
        return np.zeros(len(names), dtype=bool)
    found = np.array([_joins(name) and unicodedata.category(name[0])[0] in "LMN" for name in names])
    found[[*_special_ids(vocabulary)]] = False
    return found


def _joins(piece: str) -> bool:
    """True unless the piece begins with a space, or with a letter of a script without word separators.

    Combining marks and vowel lengtheners belong to the previous letter in every script.
    """
    if not piece or piece.startswith(SPACE):
        return False
    mark = unicodedata.category(piece[0]) in ("Mn", "Mc", "Me", "Lm")
    return mark or not unicodedata.name(piece[0], "").startswith(_UNSEPARATED)


def _special_ids(vocabulary: Vocabulary) -> tuple[int, ...]:
    return vocabulary.pad_id, vocabulary.unknown_id, vocabulary.begin_id, vocabulary.end_id
