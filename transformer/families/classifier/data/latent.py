"""Latent semantic analysis of n-grams: the directions that reproduce their matrix best, found without labels.

Deerwester et al. 1990, "Indexing by Latent Semantic Analysis". A regression along these directions weighs n-grams that
are rare in labelled texts by the company they keep in all texts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from transformer.families.classifier.data.naive_bayes import FEWEST, Floats, Labels, one_against_rest

_RAREST = 5_000
"""An n-gram counts if at least one in so many texts has it: the directions of rarer ones are noise, and cost most."""
_NEGLIGIBLE = 1e-6
"""Singular values below this share of the largest: rounding, in a corpus with fewer directions than asked for."""
Floats32 = NDArray[np.float32]


class Directions(NamedTuple):
    """Directions of the space of n-grams."""

    places: NDArray[np.int64]
    """(M,) The n-grams that count, as columns of the matrices."""
    weights: Floats32
    """(M,) The inverse document frequency of each, log(texts / texts with it) (Sparck Jones 1972)."""
    projection: Floats32
    """(M, D) To coordinates with a mean square of 1 over the texts."""
    features: int
    """How many columns a matrix has."""

    def coordinates(self, matrix: csr_array) -> Floats32:
        """The coordinates (N, D) of texts. matrix: (N, F), ones where a text has the n-gram."""
        coordinates: Floats32 = _normalised(matrix[:, self.places], self.weights) @ self.projection
        return coordinates

    def ngram_weights(self, slopes: Floats) -> Floats:
        """What each n-gram adds to the logits of a regression with these slopes, (D, K), in a text of length 1: (F, K).

        The length of a text is the root of its n-grams' squared `norms`: coordinates are linear but for it.
        """
        weights = np.zeros((self.features, slopes.shape[1]))
        weights[self.places] = self.weights[:, None] * (self.projection @ slopes)
        return weights

    def norms(self) -> Floats:
        """Each n-gram's part in the length of a text, (F,)."""
        norms = np.zeros(self.features)
        norms[self.places] = self.weights
        return norms


def directions_of(matrices: Sequence[csr_array], count: int, seed: int) -> Directions:
    """The `count` directions with the largest singular values, or as many as there are.

    matrices: (N, F) of zeros and ones, of all texts; seed: of the randomized decomposition (Halko et al. 2011).
    """
    whole = vstack(matrices, format="csr")
    texts, features = whole.shape
    counts = np.bincount(whole.indices, minlength=features)
    places = np.flatnonzero((counts >= max(FEWEST, texts / _RAREST)) & (counts < texts))
    weights = np.log(texts / counts[places]).astype(np.float32)
    normalised = _normalised(whole[:, places], weights)
    count = min(count, *normalised.shape)
    if not count:
        return Directions(places, weights, np.zeros((len(places), 0), dtype=np.float32), features)
    _, values, rows = randomized_svd(normalised, count, n_oversamples=30, n_iter=2, random_state=seed)
    kept = values > _NEGLIGIBLE * values[0]
    projection = (rows[kept] / values[kept, None] * np.sqrt(texts)).T.astype(np.float32)
    return Directions(places, weights, projection, features)


def latent_margins(coordinates: Floats32, labels: NDArray[Any], classes: int, strength: float) -> tuple[Floats, Floats]:
    """Slopes (D, K) and biases (K,) that give each class's logit, as `margins` does for n-grams.

    strength: the inverse of the regularization's.
    """
    return one_against_rest(partial(_slopes, coordinates, strength), coordinates.shape[1], labels, classes)


def _slopes(coordinates: Floats32, strength: float, labels: Labels) -> tuple[Floats, float]:
    model = LogisticRegression(C=strength, max_iter=1000).fit(coordinates.astype(np.float64), labels)
    return model.coef_[0], float(model.intercept_[0])


def _normalised(matrix: csr_array, weights: Floats32) -> csr_array:
    """The matrix with weighted columns, and rows of length 1; empty rows stay empty."""
    found = csr_array((weights[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    lengths = np.sqrt(np.bincount(rows, found.data.astype(np.float64) ** 2, minlength=matrix.shape[0]))
    found.data /= lengths[rows].astype(np.float32)
    return found
