"""The vectors of texts and n-grams: solutions of their regressions, found without labels, one core at a time."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from transformer.core.observer import Observer
from transformer.families.classifier.ngram_training import vectors_of
from transformer.families.classifier.ngrams import Background, directions, in_8_bits, unit


def drawn(texts: int = 60, features: int = 25) -> csr_array:
    found = np.random.default_rng(3).random((texts, features)) < np.linspace(0.05, 0.6, features)
    found[0] = False
    return csr_array(found.astype(np.float64))


def some_vectors(count: int, size: int, seed: int = 0) -> Any:
    return unit(np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_vector_minimises_its_squared_errors(count: int) -> None:
    """Own products are to be 1, and those of 5 random others each -1: the gradient of their sum is 0. By count, either
    way of solving."""
    others, own = some_vectors(50, 8), some_vectors(count, 8, seed=1)
    weights = np.arange(1, 51)
    found = torch.from_numpy(Background.of(others, weights).regressed(own)).double().requires_grad_()
    towards, away = torch.from_numpy(own).double(), torch.from_numpy(others).double()
    shares = torch.from_numpy(weights / weights.sum())
    loss = ((1 - towards @ found) ** 2).sum() + 5 * count * (shares * (-1 - away @ found) ** 2).sum()
    (gradient,) = torch.autograd.grad(loss + 0.11 * count * (found**2).sum(), found)
    assert found.detach().norm() > 0.1
    assert gradient.norm() < 1e-4 * count


def test_a_row_of_8_bits_has_the_same_direction() -> None:
    vectors = some_vectors(200, 64)
    assert ((vectors * directions(in_8_bits(3 * vectors))).sum(axis=1) > 0.9995).all()
    assert not directions(in_8_bits(np.zeros((1, 4), dtype=np.float32))).any()


def every(texts: int) -> list[Any]:
    """Folds: every fourth text."""
    return [np.arange(texts) % 4 == fold for fold in range(4)]


def test_the_vectors_of_ngrams_are_regressed_on_the_texts_that_have_them() -> None:
    """Against the singular vectors of NumPy's exact decomposition of the dense matrix, up to their signs."""
    matrix = drawn()
    dense = matrix.toarray()
    weighted = dense * np.log(len(dense) / dense.sum(axis=0))
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    left, _, _ = np.linalg.svd(weighted / np.where(lengths, lengths, 1), full_matrices=False)
    texts = unit(left[:, :4].astype(np.float32))
    texts[0] = 0  # without n-grams, where the decomposition leaves rounding

    def ngrams(rows: Any) -> Any:
        background = Background.of(texts[rows], dense[rows].sum(axis=1))
        return unit(np.stack([background.regressed(texts[rows & (column > 0)]) for column in dense.T]))

    folds = every(40)
    found = vectors_of([matrix[:40], matrix[40:]], 4, 1000, 1, folds, Observer())
    assert found.places.tolist() == [*range(25)]
    assert np.abs(directions(found.vectors)) == pytest.approx(np.abs(ngrams(np.ones(60, bool))), abs=2e-2), "8 bits"
    assert not found.directions[0].any(), "a text without n-grams"
    lengths = []
    for fold in folds:
        rest = np.ones(60, dtype=bool)
        rest[:40] = ~fold
        vectors = ngrams(rest)
        background = Background.of(vectors, dense[rest].sum(axis=0))
        for row in np.flatnonzero(fold):
            own = vectors[dense[row] > 0]
            expected = background.regressed(own)
            assert np.abs(found.directions[row]) == pytest.approx(np.abs(2 * unit(expected)), abs=5e-2), "8 bits"
            lengths += [len(own) * np.linalg.norm(expected)] if len(own) else []
    assert found.typical == pytest.approx(np.median(lengths), rel=2e-2)


def test_the_model_adds_the_regression_along_the_direction_of_a_text() -> None:
    matrix = drawn()
    found = vectors_of([matrix], 5, 20, 1, every(60), Observer())
    slopes = np.random.default_rng(0).normal(size=(5, 3))
    fitted, vectors = found.fitted(slopes), directions(found.vectors)
    for text in range(60):
        places = matrix.indices[matrix.indptr[text] : matrix.indptr[text + 1]]
        own = vectors[[row for row, place in enumerate(found.places) if place in places]]
        expected = np.sqrt(5) * unit(found.background.regressed(own)) @ slopes
        assert fitted.logits(places) == pytest.approx(expected, abs=1e-4)
        parts = fitted.parts(places)
        assert parts.sum(axis=0) == pytest.approx(expected, abs=1e-4)
        assert not parts[~np.isin(places, found.places)].any()
