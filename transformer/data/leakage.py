"""Texts of one split that another split contains too, exactly or nearly: a model may have memorized their answers.

Texts are compared as lowercased words without punctuation, or as characters in scripts that do not separate words. Two
are near duplicates if the sets of their word trigrams have a Jaccard similarity of at least THRESHOLD: in a sentence of
twelve words one may differ. The search is exact: two sets that similar share one of their rarest members (prefix
filter, Bayardo et al. 2007, section 4).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from transformer.data.text import UNSEPARATED, separates_words

Ids = NDArray[np.int64]
THRESHOLD = 0.5
_ASCII_WORD = re.compile(r"\w+")
_JOINERS = "\u200c\u200d"
_FIRST, _SECOND = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9  # odd; with them, three word ids make one number
_CHUNK = 500  # texts whose candidates are checked in one batch


def words(text: str) -> list[str]:
    """Split a text into lowercased words without punctuation; into characters in scripts that do not separate words."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _word().findall(unicodedata.normalize("NFC", text).lower())


def word_count(text: str) -> int:
    """Count words separated by white space, or those of `words` in scripts that do not separate words."""
    return len(text.split() if separates_words(text) else words(text))


def _compared(text: str) -> list[str]:
    """Return the words of a text; if it has none, its emoji and symbols; if none either, its punctuation."""
    symbols = (character for character in text if unicodedata.category(character).startswith("S"))
    return words(text) or [*symbols] or text.split()


@cache
def _word() -> re.Pattern[str]:
    """Return a pattern for a letter or digit and those after it, with vowel signs and accents, which `re` excludes."""
    marks = "".join(map(chr, filter(_is_mark, range(0x300, 0x110000))))
    kept = re.sub(f"[{UNSEPARATED}]", "", marks)
    return re.compile(rf"[{UNSEPARATED}]|[^\W{UNSEPARATED}](?:[^\W{UNSEPARATED}]|[{kept}{_JOINERS}])*")


def _is_mark(number: int) -> bool:
    return unicodedata.category(chr(number)).startswith("M")


class WordNumbers(dict[str, int]):
    """Assigns ids to words, from 1, in order of appearance; texts to compare must share one."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self) + 1
        return number


@dataclass(frozen=True)
class TrigramSets:
    """Sets of word trigrams of many texts."""

    members: Ids
    """(M,) All sets concatenated, each sorted."""
    offsets: Ids
    """(N + 1,) Start of each set, and the end of the last."""
    hashes: NDArray[np.int64]
    """(N,) Hashes of the whole texts: equal for the same words in the same order."""

    @classmethod
    def of(cls, texts: Sequence[str], numbers: WordNumbers) -> Self:
        """Build one set per text; a text of fewer than three words is one padded trigram."""
        sets, hashes = [], []
        for text in texts:
            ids = [numbers[word] for word in _compared(text)]
            hashes.append(hash(tuple(ids)))  # of integers: the same in every process
            row = np.array(ids + [0] * (3 - len(ids)), dtype=np.int64)
            sets.append(np.unique(row[:-2] * _FIRST + row[1:-1] * _SECOND + row[2:]))  # modulo 2^64
        offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        members = np.concatenate(sets) if sets else np.empty(0, dtype=np.int64)
        return cls(members, offsets, np.array(hashes, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __add__(self, other: Self) -> Self:
        """Concatenate both collections."""
        return type(self)(
            np.concatenate((self.members, other.members)),
            np.concatenate((self.offsets, self.offsets[-1] + other.offsets[1:])),
            np.concatenate((self.hashes, other.hashes)),
        )


@dataclass(frozen=True)
class Duplicates:
    """Duplicate information for each text of a split."""

    exact: NDArray[np.bool_]
    """(N,) True for the same words in the same order as another text."""
    similarity: NDArray[np.float64]
    """(N,) The Jaccard similarity of the most similar other text, 0 if none reaches the threshold."""
    match: Ids
    """(N,) Index of that text, the first of several; -1 for none."""

    @property
    def any(self) -> NDArray[np.bool_]:
        """(N,) True for exact and near duplicates."""
        return self.exact | (self.match >= 0)

    def figures(self) -> dict[str, float]:
        """Count the texts with an exact duplicate, and with only a near one."""
        return {"duplicates": int(self.exact.sum()), "near_duplicates": int((self.any & ~self.exact).sum())}


def find_duplicates(texts: TrigramSets, others: TrigramSets, threshold: float = THRESHOLD) -> Duplicates:
    """Find the duplicates of `texts` among `others`, which must share their word ids. threshold: above 0, up to 1."""
    exact = np.isin(texts.hashes, others.hashes)
    similarity, match = np.zeros(len(texts)), np.full(len(texts), -1, dtype=np.int64)
    every, columns = np.unique(np.concatenate((texts.members, others.members)), return_inverse=True)
    rarity = np.bincount(columns, minlength=len(every))
    own, other = (
        _matrix(part, sets.offsets, len(every))
        for part, sets in zip(np.split(columns, [len(texts.members)]), (texts, others), strict=True)
    )
    sizes, other_sizes = np.diff(own.indptr), np.diff(other.indptr)
    own_rarest, other_rarest = (_rarest(sets, rarity, threshold) for sets in (own, other))
    candidates = other_rarest.T.tocsr()
    for start in range(0, len(texts), _CHUNK):
        rows, found = (own_rarest[start : start + _CHUNK] @ candidates).nonzero()
        rows = rows + start
        pieces = np.array_split(np.arange(len(rows)), len(rows) // (100 * _CHUNK) + 1)
        shared = np.concatenate([own[rows[piece]].multiply(other[found[piece]]).sum(axis=1) for piece in pieces])
        jaccard = shared / (sizes[rows] + other_sizes[found] - shared)
        order = np.lexsort((found, -jaccard, rows))  # the most similar of each row first, of equal ones the first
        best = order[np.unique(rows[order], return_index=True)[1]]
        best = best[jaccard[best] >= threshold - 1e-9]
        similarity[rows[best]], match[rows[best]] = jaccard[best], found[best]
    return Duplicates(exact, similarity, match)


def _matrix(members: Ids, offsets: Ids, width: int) -> csr_array:
    """Return sets as the rows of a sparse binary matrix."""
    return csr_array((np.ones(len(members), dtype=np.int32), members, offsets), shape=(len(offsets) - 1, width))


def _rarest(sets: csr_array, rarity: Ids, threshold: float) -> csr_array:
    """Return the rarest members of each set, one of which any sufficiently similar set must contain."""
    sizes = np.diff(sets.indptr)
    row = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((sets.indices, rarity[sets.indices], row))
    limit = sizes - np.ceil(threshold * sizes - 1e-9).astype(np.int64) + 1
    kept = np.arange(len(row)) - sets.indptr[:-1][row] < limit[row]
    offsets = np.concatenate(([0], np.cumsum(np.minimum(limit, sizes))))
    return _matrix(sets.indices[order][kept], offsets, sets.shape[1])


class LeakageCheck:
    """Compares splits with the texts seen in training or model selection."""

    COLUMNS = ("split", "similarity", "text", "seen_split", "seen_text")
    _SHOWN = 20  # texts per split in the table

    def __init__(self, train: Sequence[str]) -> None:
        """train: the texts of the training split."""
        self._numbers = WordNumbers()
        self._seen = TrigramSets.of(train, self._numbers)
        self._texts = [("train", text) for text in train]
        self.rows: list[tuple[str, float, str, str, str]] = []
        """Table: per split, the 20 texts most similar to a seen one."""

    def check(self, split: str, texts: Sequence[str], *, seen_from_now_on: bool) -> Duplicates:
        """Find a split's duplicates among the seen texts; seen_from_now_on: then add the split to the seen texts."""
        sets = TrigramSets.of(texts, self._numbers)
        found = find_duplicates(sets, self._seen)
        for row in np.argsort(-found.similarity, kind="stable")[: self._SHOWN].tolist():
            if found.match[row] >= 0:
                other = self._texts[found.match[row]]
                self.rows.append((split, round(float(found.similarity[row]), 4), texts[row], *other))
        if seen_from_now_on:
            self._seen += sets
            self._texts += [(split, text) for text in texts]
        return found
