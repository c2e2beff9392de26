"""Which n-grams occur in a text. NumPy alone."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
LONGEST = 3
"""The largest n: the keys of longer n-grams over large vocabularies would not fit into 64 bits."""


def ngram_keys(ids: Ids, size: int, longest: int) -> Ids:
    """The keys of the different n-grams, n from 1 to `longest`, of a text: (M,), sorted.

    ids: below `size`, with begin and end token, which are left out. A unigram's key is its id; that of a longer n-gram
    is size * (key of all but its last id + 1) + last id, so no two n-grams share a key.
    """
    inner = ids[1:-1]
    keys = [inner]
    for length in range(2, longest + 1):
        keys.append(size * (keys[-1][:-1] + 1) + inner[length - 1 :])
    return np.unique(np.concatenate(keys))


def ids_of(key: int, size: int) -> list[int]:
    """The ids of an n-gram, given its key."""
    ids = [key % size]
    while key >= size:
        key = key // size - 1
        ids.insert(0, key % size)
    return ids


class Occurrences(NamedTuple):
    """Which n-grams occur in which text."""

    rows: Ids
    """(M,) Text numbers, ascending."""
    keys: Ids
    """(M,) As in `ngram_keys`."""
    texts: int

    @classmethod
    def of(cls, sequences: Iterable[Ids], size: int, longest: int) -> Self:
        """Those of some texts; arguments as in `ngram_keys`."""
        keys = [ngram_keys(ids, size, longest) for ids in sequences]
        rows = np.repeat(np.arange(len(keys)), [len(row) for row in keys])
        return cls(rows, np.concatenate(keys) if keys else np.empty(0, dtype=np.int64), len(keys))

    def among(self, known: Ids) -> tuple[Ids, Ids]:
        """The occurrences of `known` keys, which are sorted: text numbers and places in `known`, (M',) each."""
        if not len(known):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        places = np.searchsorted(known, self.keys).clip(max=len(known) - 1)
        inside = known[places] == self.keys
        return self.rows[inside], places[inside]
