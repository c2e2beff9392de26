"""Which tokens of a window a masked model has to predict, and what it is shown instead (Devlin et al. 2019, 3.1)."""

import json
import unicodedata
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import SPACE, Vocabulary
from transformer.families.language.nn.mask_token import mask_id

_SHOWN, _RANDOM = 0.1, 0.1  # of the chosen tokens: left as they are, replaced by a random one; the others are masked
_PREFIX = "##"
_UNSEPARATED = (
    *("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER"),
)
"""How the names of letters begin whose scripts do not separate words, those of `evaluation/scripts.py`."""


class Masked(NamedTuple):
    """A window as the model is shown it."""

    given: Ids
    """(T,)."""
    hidden: NDArray[np.bool_]
    """(T,) True on the tokens to predict."""


class Masking:
    """Chooses tokens at random: of 100, 80 become [MASK], 10 another token and 10 stay.

    A window's choice depends on seed, epoch and the window's number alone.
    """

    def __init__(self, vocabulary: Vocabulary, *, share: float, whole_words: bool, seed: int) -> None:
        """share: of the tokens between begin and end; whole_words: choose all pieces of a word or none.

        Raises UserError for a vocabulary of special tokens alone.
        """
        self._share, self._seed, self._mask = share, seed, mask_id(vocabulary)
        special = {*_special_ids(vocabulary), self._mask}
        self._ordinary = np.array([number for number in range(vocabulary.size) if number not in special])
        if not len(self._ordinary):
            raise UserError("the vocabulary has special tokens alone: lower vocab.min_frequency")
        self._continues = continuations(vocabulary) if whole_words else None

    def __call__(self, window: Ids, epoch: int, number: int) -> Masked:
        """window: (T,), from begin to end token; at least one token between them is hidden."""
        draw = np.random.default_rng((self._seed, epoch, number))
        hidden = np.zeros(len(window), dtype=bool)
        hidden[1:-1] = self._chosen(window[1:-1], draw)
        fate = draw.random(len(window))
        given = np.where(hidden & (fate >= _SHOWN + _RANDOM), self._mask, window)
        swapped = hidden & (fate < _RANDOM)
        given[swapped] = draw.choice(self._ordinary, int(swapped.sum()))
        return Masked(given, hidden)

    def _chosen(self, tokens: Ids, draw: np.random.Generator) -> NDArray[np.bool_]:
        """The given share of the tokens, or words in random order that have as many, to the nearest word."""
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
    """(V,) True for pieces that continue a word: `##ing`, or letters, marks or digits without a space before them.

    A piece of a script that does not separate words is a word of its own, else whole clauses would be one.
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
    """Whether it does not begin with a space, or with a letter of a script that does not separate words.

    Marks and what lengthens a vowel belong to the letter before them in every script.
    """
    if not piece or piece.startswith(SPACE):
        return False
    mark = unicodedata.category(piece[0]) in ("Mn", "Mc", "Me", "Lm")
    return mark or not unicodedata.name(piece[0], "").startswith(_UNSEPARATED)


def _special_ids(vocabulary: Vocabulary) -> tuple[int, ...]:
    return vocabulary.pad_id, vocabulary.unknown_id, vocabulary.begin_id, vocabulary.end_id
