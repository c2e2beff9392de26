"""The baseline that a network has to beat: logistic regression over n-grams, weighted by Naive Bayes.

Wang and Manning 2012, "Baselines and Bigrams", with logistic regression in place of the SVM (Mesnil et al. 2015,
section 2.3).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from transformer.evaluation.bootstrap import Floats
from transformer.families.classifier.nn.ngrams import Ids, Occurrences

Labels = NDArray[np.int8]
_SMOOTHING = 1.0
_FEWEST = 2  # minimum number of texts with a feature
_STRENGTH = 1.0  # inverse regularization strength; on IMDB's validation split, 0.3 to 16 differ by 0.1 points
_DIGITS = 6


def _matrix(occurrences: Occurrences, known: Ids) -> csr_array:
    """The matrix (texts, known) with ones where a text has the n-gram. known: sorted keys."""
    rows, columns = occurrences.among(known)
    where = rows.astype(np.int32), columns.astype(np.int32)  # liblinear only takes int32
    return csr_array((np.ones(len(rows)), where), shape=(occurrences.texts, len(known)))


class LinearBaseline:
    """A binary classifier of encoded texts, trained by its constructor."""

    def __init__(self, sequences: Iterable[Ids], labels: Labels, size: int, longest: int = 2) -> None:
        """sequences, size, longest: as in `ngram_keys`; labels: (N,) of 0 and 1."""
        self._size, self._longest = size, longest
        features = Occurrences.of(sequences, size, longest)
        keys, counts = np.unique(features.keys, return_counts=True)
        self._known = keys[counts >= _FEWEST]
        self._prior = float(labels.mean()) if len(labels) else 0.5
        self._model: LogisticRegression | None = None
        if len(self._known) and 0 < self._prior < 1:
            matrix = _matrix(features, self._known)
            self._ratio = log_count_ratio(matrix, labels)
            self._model = LogisticRegression(C=_STRENGTH, solver="liblinear", dual=True, random_state=0, max_iter=1000)
            self._model.fit(self._weighted(matrix), labels)

    def positive(self, sequences: Iterable[Ids]) -> Floats:
        """Each text's probability of class 1, (N,); its frequency in training if there was nothing to learn."""
        features = Occurrences.of(sequences, self._size, self._longest)
        if self._model is None:
            return np.full(features.texts, round(self._prior, _DIGITS))
        probabilities: Floats = self._model.predict_proba(self._weighted(_matrix(features, self._known)))[:, 1]
        return probabilities.round(_DIGITS)

    def _weighted(self, matrix: csr_array) -> csr_array:
        weighted = matrix.copy()
        weighted.data = self._ratio[weighted.indices]
        return weighted


def log_count_ratio(matrix: csr_array, labels: Labels) -> Floats:
    """The log-count ratio r = log((p / |p|) / (q / |q|)) of each feature, (F,) (section 2.1).

    p and q count the texts of class 1 and 0 with the feature, plus 1.

    matrix: (N, F) of zeros and ones; labels: (N,) of 0 and 1.
    """
    p, q = (_SMOOTHING + matrix.T @ (labels == label).astype(np.float64) for label in (1, 0))
    ratio: Floats = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


class LinearBaselines:
    """The linear baseline for any number of classes: one-vs-rest with more than two."""

    def __init__(self, sequences: Iterable[Ids], labels: Labels, size: int, classes: int, longest: int = 2) -> None:
        """As `LinearBaseline`, with labels from 0 to `classes` - 1."""
        given, wanted = list(sequences), [1] if classes == 2 else range(classes)
        self._models = [LinearBaseline(given, (labels == number).astype(np.int8), size, longest) for number in wanted]

    def probabilities(self, sequences: Iterable[Ids]) -> Floats:
        """The probability of class 1 of two, (N,), or of each class, (N, K)."""
        given = list(sequences)
        found = [model.positive(given) for model in self._models]
        if len(found) == 1:
            return found[0]
        table = np.stack(found, axis=1) + 1e-9  # every model may reject its class with certainty
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares.round(_DIGITS)
