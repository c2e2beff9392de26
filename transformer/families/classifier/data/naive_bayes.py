"""Logistic regression on n-grams weighted by naive Bayes (Wang and Manning 2012; Mesnil et al. 2015, section 2.3)."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.linear_model import LogisticRegression

from transformer.families.classifier.nn.ngrams import Ids, Occurrences

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
FEWEST = 2
"""Minimum document frequency of an n-gram."""
_SMOOTHING = 1.0


def known_keys(occurrences: Occurrences, most: int) -> Ids:
    """Return the sorted keys of n-grams in at least `FEWEST` texts; the `most` with the highest document frequency."""
    keys, counts = np.unique(occurrences.keys, return_counts=True)
    keys, counts = keys[counts >= FEWEST], counts[counts >= FEWEST]
    if len(keys) <= most:
        return keys
    return np.sort(keys[np.argsort(-counts, kind="stable")[:most]])


def occurrence_matrix(occurrences: Occurrences, known: Ids) -> csr_array:
    """Return the binary occurrence matrix (texts, known): 1 where a text has the n-gram. known: sorted keys."""
    rows, columns = occurrences.among(known)
    where = rows.astype(np.int32), columns.astype(np.int32)  # liblinear only takes int32
    return csr_array((np.ones(len(rows)), where), shape=(occurrences.texts, len(known)))


def log_count_ratio(matrix: csr_array, labels: Labels) -> Floats:
    """Return each feature's log-count ratio r = log((p / |p|) / (q / |q|)), (F,) (Wang and Manning 2012, section 2.1).

    p and q count the texts of class 1 and 0 with the feature, plus 1.

    matrix: (N, F) of zeros and ones; labels: (N,) of 0 and 1.
    """
    p, q = (_SMOOTHING + matrix.T @ (labels == label).astype(np.float64) for label in (1, 0))
    ratio: Floats = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


def margins(
    matrix: csr_array,
    directions: NDArray[Any],
    labels: NDArray[Any],
    classes: int,
    strength: float,
    factors: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Fit weights (F + D, K) and biases (K,) of the class logits: one regression, or one-vs-rest if K > 2.

    A class that all texts have, or none, gets the logit of its smoothed frequency.
    matrix: (N, F) of zeros and ones, weighted by naive Bayes; directions: (N, D) further features, used unweighted;
    labels: (N,); strength: inverse regularization strength; factors: (N,) loss weight per text, None for 1.
    """
    fit = partial(_fitted, matrix, csr_array(directions), strength, factors)
    if classes == 2:
        weight, bias = fit((labels == 1).astype(np.int8))
        return np.stack((-weight, weight), axis=1) / 2, np.array([-bias, bias]) / 2
    each = [fit((labels == number).astype(np.int8)) for number in range(classes)]
    return np.stack([weight for weight, _ in each], axis=1), np.array([bias for _, bias in each])


def _fitted(
    matrix: csr_array, directions: csr_array, strength: float, factors: Floats | None, labels: Labels
) -> tuple[Floats, float]:
    """Fit a binary regression on labels of 0 and 1. Returns the weights (F + D,) and the bias."""
    width, ones = matrix.shape[1] + directions.shape[1], int(labels.sum())
    if not width or ones in (0, len(labels)):
        return np.zeros(width), float(np.log((ones + _SMOOTHING) / (len(labels) - ones + _SMOOTHING)))
    ratio = log_count_ratio(matrix, labels)
    weighted = matrix.copy()
    weighted.data = ratio[weighted.indices]
    model = LogisticRegression(C=strength, solver="liblinear", dual=True, random_state=0, max_iter=1000)
    model.fit(hstack((weighted, directions), format="csr"), labels, factors)
    weights: Floats = model.coef_[0]
    weights[: len(ratio)] *= ratio
    return weights, float(model.intercept_[0])
