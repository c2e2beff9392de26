"""Scores of a binary classifier, by scikit-learn.

labels: (N,) of 0 and 1; positive: (N,) probabilities of 1, and a text is answered positive from 0.5 on.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from transformer.evaluation.bootstrap import Floats, bootstrap

Labels = NDArray[np.int8]
_POINTS = 200  # of a curve: enough for a smooth line, whatever the number of reviews
_DIGITS = 6
RESAMPLED = ("accuracy", "f1", "roc_auc")
"""The scores that have an interval."""


def scores(labels: Labels, positive: Floats) -> dict[str, float]:
    """Accuracy, F1 of the positive class, mean cross-entropy in nats, Brier score, areas under the ROC and PR curve.

    Brier 1950: the mean of (p - y)^2. `pr_auc` is the average precision. The areas are left out where one class is
    missing.
    """
    predicted = positive >= 0.5
    figures = {
        "accuracy": accuracy_score(labels, predicted),
        "f1": f1_score(labels, predicted, zero_division=0),
        "loss": log_loss(labels, positive, labels=[0, 1]),
        "brier": brier_score_loss(labels, positive, pos_label=1),
    }
    if len(np.unique(labels)) == 2:
        figures["roc_auc"] = roc_auc_score(labels, positive)
        figures["pr_auc"] = average_precision_score(labels, positive)
    return {name: round(float(value), _DIGITS) for name, value in figures.items()}


def resampled_scores(labels: Labels, positive: Floats, samples: int) -> dict[str, Floats]:
    """Accuracy, F1 and ROC-AUC of resampled texts, (samples,) each; NaN for a resample without one of the classes."""
    actual, predicted = labels == 1, positive >= 0.5
    right, hits, answered = actual == predicted, actual & predicted, actual.astype(int) + predicted
    area = _RocAuc(actual, positive)

    def score(weights: Floats) -> tuple[float, float, float]:
        return weights @ right / len(labels), 2 * (weights @ hits) / max(weights @ answered, 1), area(weights)

    table = bootstrap(score, len(labels), samples).reshape(-1, len(RESAMPLED))
    return dict(zip(RESAMPLED, table.T, strict=True))


class _RocAuc:
    """The probability that a positive text ranks before a negative one, ties half (Hanley and McNeil 1982)."""

    def __init__(self, actual: NDArray[np.bool_], positive: Floats) -> None:
        _, self._rank = np.unique(positive, return_inverse=True)
        self._actual = actual
        self._ranks = int(self._rank.max(initial=-1)) + 1

    def __call__(self, weights: Floats) -> float:
        """The area where each text counts (N,) times; NaN where a class is missing."""
        ones = np.bincount(self._rank, weights * self._actual, minlength=self._ranks)
        zeros = np.bincount(self._rank, weights * ~self._actual, minlength=self._ranks)
        pairs = ones.sum() * zeros.sum()
        below = np.cumsum(zeros) - zeros / 2
        return float(ones @ below / pairs) if pairs else float("nan")


def confusion(labels: Labels, positive: Floats, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Rows of actual class, predicted class and their number."""
    matrix = confusion_matrix(labels, positive >= 0.5, labels=range(len(names)))
    return [
        (actual, predicted, int(matrix[i, j])) for i, actual in enumerate(names) for j, predicted in enumerate(names)
    ]


def roc(labels: Labels, positive: Floats) -> list[tuple[float, float]]:
    """Points of the ROC curve: false and true positive rate."""
    if len(np.unique(labels)) < 2:
        return []
    false_rate, true_rate, _ = roc_curve(labels, positive)
    return _thinned(false_rate, true_rate)


def precision_recall(labels: Labels, positive: Floats) -> list[tuple[float, float]]:
    """Points of the precision-recall curve: recall and precision."""
    if len(np.unique(labels)) < 2:
        return []
    precision, recall, _ = precision_recall_curve(labels, positive)
    return _thinned(recall[::-1], precision[::-1])


def accuracy_by_length(labels: Labels, positive: Floats, lengths: Sequence[int]) -> list[tuple[str, int, float]]:
    """Accuracy by the number of words, in five groups of about the same size: the group's name, texts and accuracy."""
    right = (labels == 1) == (positive >= 0.5)
    sizes = np.asarray(lengths, dtype=np.int64)
    if not len(sizes):
        return []
    ends = np.unique(np.quantile(sizes, (0.2, 0.4, 0.6, 0.8, 1.0), method="higher"))
    bins = np.searchsorted(ends, sizes)
    rows, start = [], int(sizes.min())
    for number, end in enumerate(ends.tolist()):
        inside = bins == number
        rows.append((f"{start}-{end}", int(inside.sum()), round(float(right[inside].mean()), _DIGITS)))
        start = end + 1
    return rows


def confident_errors(labels: Labels, positive: Floats, count: int) -> list[int]:
    """The numbers of the wrongly answered texts, the surest first, at most `count`."""
    wrong = np.flatnonzero((labels == 1) != (positive >= 0.5))
    order = np.argsort(-np.abs(positive[wrong] - 0.5), kind="stable")
    found: list[int] = wrong[order][:count].tolist()
    return found


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    grid = np.linspace(0, 1, min(_POINTS, len(x)))
    return [
        (round(float(a), _DIGITS), round(float(b), _DIGITS)) for a, b in zip(grid, np.interp(grid, x, y), strict=True)
    ]
