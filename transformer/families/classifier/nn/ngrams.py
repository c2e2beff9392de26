"""N-gram extraction, with NumPy only."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def ngram_keys(ids: Ids, size: int, longest: int) -> Ids:
    """Return the sorted distinct keys (M,) of a text's n-grams, n from 1 to `longest`.

    ids: below `size`, with begin and end token, which are excluded. A unigram's key is its id; the key of a longer
    n-gram is size * (key of all but its last id + 1) + last id, so no two n-grams share a key.
    """
    inner = ids[1:-1]
    keys = [inner]
    for length in range(2, longest + 1):
        keys.append(size * (keys[-1][:-1] + 1) + inner[length - 1 :])
    return np.unique(np.concatenate(keys))


def ids_of(key: int, size: int) -> list[int]:
    """Return the ids of the n-gram with this key."""
    ids = [key % size]
    while key >= size:
        key = key // size - 1
        ids.insert(0, key % size)
    return ids


class Occurrences(NamedTuple):
    """Occurrences of n-grams in texts."""

    rows: Ids
    """(M,): text numbers, ascending."""
    keys: Ids
    """(M,): n-gram keys, as in `ngram_keys`."""
    texts: int

    @classmethod
    def of(cls, sequences: Iterable[Ids], size: int, longest: int) -> Self:
        """Collect the occurrences in `sequences`; arguments as in `ngram_keys`."""
        keys = [ngram_keys(ids, size, longest) for ids in sequences]
        rows = np.repeat(np.arange(len(keys)), [len(row) for row in keys])
        return cls(rows, np.concatenate(keys) if keys else np.empty(0, dtype=np.int64), len(keys))

    def among(self, known: Ids) -> tuple[Ids, Ids]:
        """Return the occurrences of sorted `known` keys: text numbers and indices into `known`, (M',) each."""
        if not len(known):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        places = np.searchsorted(known, self.keys).clip(max=len(known) - 1)
        inside = known[places] == self.keys
        return self.rows[inside], places[inside]
