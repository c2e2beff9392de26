"""The baseline that a network has to beat: logistic regression over words and pairs of words, weighted by Naive Bayes.

Wang and Manning 2012, "Baselines and Bigrams", with logistic regression for the SVM (Mesnil et al. 2015, section 2.3).
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from transformer.evaluation.bootstrap import Floats

Ids = NDArray[np.int64]
Labels = NDArray[np.int8]
_SMOOTHING = 1.0
_FEWEST = 2  # texts that a feature must be in
_STRENGTH = 1.0  # inverse of the regularization; on IMDB's validation split 0.3 to 16 differ by 0.1 points
_DIGITS = 6


class _Features(NamedTuple):
    """Which words and pairs of neighbours are in which text."""

    rows: Ids
    """(M,) Numbers of texts."""
    keys: Ids
    """(M,) Of word i: i; of the pair i, j: size * (i + 1) + j."""
    texts: int

    @classmethod
    def of(cls, sequences: Iterable[Ids], size: int) -> Self:
        """The features of sequences of ids below `size`, each between a begin and an end token, which are left out."""
        keys = [
            np.unique(np.concatenate((ids, size * (ids[:-1] + 1) + ids[1:]))) for ids in (s[1:-1] for s in sequences)
        ]
        rows = np.repeat(np.arange(len(keys)), [len(row) for row in keys])
        return cls(rows, np.concatenate(keys) if keys else np.empty(0, dtype=np.int64), len(keys))

    def matrix(self, known: Ids) -> csr_array:
        """(texts, known) of ones where a text has the feature. known: sorted keys."""
        column = np.searchsorted(known, self.keys).clip(max=max(len(known) - 1, 0))
        inside = known[column] == self.keys if len(known) else np.zeros(len(self.keys), dtype=bool)
        ones = np.ones(int(inside.sum()))
        where = self.rows[inside].astype(np.int32), column[inside].astype(np.int32)  # liblinear takes no longer ones
        return csr_array((ones, where), shape=(self.texts, len(known)))


class LinearBaseline:
    """A classifier of encoded texts, trained at once."""

    def __init__(self, sequences: Iterable[Ids], labels: Labels, size: int) -> None:
        """sequences: of ids below `size`, with begin and end token; labels: (N,) of 0 and 1."""
        self._size = size
        features = _Features.of(sequences, size)
        keys, counts = np.unique(features.keys, return_counts=True)
        self._known = keys[counts >= _FEWEST]
        self._prior = float(labels.mean()) if len(labels) else 0.5
        self._model: LogisticRegression | None = None
        if len(self._known) and 0 < self._prior < 1:
            matrix = features.matrix(self._known)
            self._ratio = log_count_ratio(matrix, labels)
            self._model = LogisticRegression(C=_STRENGTH, solver="liblinear", dual=True, random_state=0, max_iter=1000)
            self._model.fit(self._weighted(matrix), labels)

    def positive(self, sequences: Iterable[Ids]) -> Floats:
        """The probability of class 1 for each text, (N,); its share in training where there was nothing to learn."""
        features = _Features.of(sequences, self._size)
        if self._model is None:
            return np.full(features.texts, round(self._prior, _DIGITS))
        probabilities: Floats = self._model.predict_proba(self._weighted(features.matrix(self._known)))[:, 1]
        return probabilities.round(_DIGITS)

    def _weighted(self, matrix: csr_array) -> csr_array:
        weighted = matrix.copy()
        weighted.data = self._ratio[weighted.indices]
        return weighted


def log_count_ratio(matrix: csr_array, labels: Labels) -> Floats:
    """The log-count ratio r = log((p / |p|) / (q / |q|)) of each feature, (F,) (section 2.1).

    p and q count the texts of class 1 and 0 that have it, plus 1.

    matrix: (N, F) of zeros and ones; labels: (N,) of 0 and 1.
    """
    p, q = (_SMOOTHING + matrix.T @ (labels == label).astype(np.float64) for label in (1, 0))
    ratio: Floats = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


class LinearBaselines:
    """The same for any number of classes: with more than two, one model tells each class from all others."""

    def __init__(self, sequences: Iterable[Ids], labels: Labels, size: int, classes: int) -> None:
        """As `LinearBaseline`, with labels from 0 to `classes` - 1."""
        given, wanted = list(sequences), [1] if classes == 2 else range(classes)
        self._models = [LinearBaseline(given, (labels == number).astype(np.int8), size) for number in wanted]

    def probabilities(self, sequences: Iterable[Ids]) -> Floats:
        """The probability of class 1 of two, (N,), or of each class, (N, K)."""
        given = list(sequences)
        found = [model.positive(given) for model in self._models]
        if len(found) == 1:
            return found[0]
        table = np.stack(found, axis=1) + 1e-9  # each model may be sure that it is not its class
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares.round(_DIGITS)
