"""The n-grams of a text and their keys."""

import numpy as np
import pytest

from transformer.families.classifier.interface import LONGEST
from transformer.families.classifier.ngrams import Occurrences, ids_of, ngram_keys


def spelt_out(ids: list[int], longest: int) -> set[tuple[int, ...]]:
    inner = ids[1:-1]
    return {tuple(inner[at : at + n]) for n in range(1, longest + 1) for at in range(len(inner) - n + 1)}


@pytest.mark.parametrize("longest", range(1, LONGEST + 1))
@pytest.mark.parametrize("length", [0, 1, 2, 3, 30])
def test_keys_are_those_of_all_ngrams_but_of_the_first_and_last_token(longest: int, length: int) -> None:
    ids = [8, *np.random.default_rng(length).integers(0, 9, length).tolist(), 8]
    keys = ngram_keys(np.array(ids), 9, longest)
    assert {tuple(ids_of(key, 9)) for key in keys.tolist()} == spelt_out(ids, longest)
    assert (np.diff(keys) > 0).all()


def test_keys_of_the_largest_vocabulary_fit() -> None:
    size = 2**20
    keys = ngram_keys(np.array([0, *[size - 1] * LONGEST, 0]), size, LONGEST)
    assert ids_of(int(keys[-1]), size) == [size - 1] * LONGEST


def test_only_known_ngrams_are_found() -> None:
    found = Occurrences.of([np.array([0, 5, 6, 0]), np.array([0, 0]), np.array([0, 6, 7, 0])], 8, 2)
    known = np.unique(np.concatenate([ngram_keys(np.array([0, 6, 0]), 8, 2), ngram_keys(np.array([0, 6, 7, 0]), 8, 2)]))
    rows, places = found.among(known)
    assert list(zip(rows.tolist(), (ids_of(int(known[place]), 8) for place in places), strict=True)) == [
        (0, [6]),
        (2, [6]),
        (2, [7]),
        (2, [6, 7]),
    ]
    assert found.texts == 3
    assert [len(part) for part in found.among(known[:0])] == [0, 0]
