"""The baseline that a network has to beat: logistic regression over n-grams, weighted by Naive Bayes."""

from collections.abc import Iterable

import numpy as np
from sklearn.linear_model import LogisticRegression

from transformer.evaluation.bootstrap import Floats
from transformer.families.classifier.data.naive_bayes import (
    Labels,
    known_keys,
    occurrence_matrix,
    regression,
    weighted,
)
from transformer.families.classifier.nn.ngrams import Ids, Occurrences

_STRENGTH = 1.0  # inverse regularization strength; on IMDB's validation split, 0.3 to 16 differ by 0.1 points
_DIGITS = 6


class LinearBaseline:
    """A binary classifier of encoded texts, trained by its constructor."""

    def __init__(self, sequences: Iterable[Ids], labels: Labels, size: int, longest: int = 2) -> None:
        """sequences, size, longest: as in `ngram_keys`; labels: (N,) of 0 and 1."""
        self._size, self._longest = size, longest
        features = Occurrences.of(sequences, size, longest)
        self._known = known_keys(features)
        self._prior = float(labels.mean()) if len(labels) else 0.5
        self._model: LogisticRegression | None = None
        if len(self._known) and 0 < self._prior < 1:
            self._ratio, self._model = regression(occurrence_matrix(features, self._known), labels, _STRENGTH)

    def positive(self, sequences: Iterable[Ids]) -> Floats:
        """Each text's probability of class 1, (N,); its frequency in training if there was nothing to learn."""
        features = Occurrences.of(sequences, self._size, self._longest)
        if self._model is None:
            return np.full(features.texts, round(self._prior, _DIGITS))
        matrix = weighted(occurrence_matrix(features, self._known), self._ratio)
        probabilities: Floats = self._model.predict_proba(matrix)[:, 1]
        return probabilities.round(_DIGITS)


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
