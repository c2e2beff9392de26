"""Classification metrics, computed with scikit-learn.

labels: (N,) of 0 to K - 1. probabilities: with two classes (N,), of class 1, which is predicted from 0.5 on; with more
classes (N, K), and the most probable class is predicted.
"""

from collections.abc import Sequence
from typing import Any

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
    precision_recall_fscore_support,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from transformer.evaluation.bootstrap import Floats, bootstrap

Labels = NDArray[np.int8]
_POINTS = 200  # per curve: enough for a smooth line, whatever the number of texts
_DIGITS = 6
CERTAIN = 5e-7
"""Half a unit in the last digit of rounded probabilities; clipping to it keeps the log of a rounded 0 finite."""
RESAMPLED = ("accuracy", "f1", "roc_auc")
"""Metrics with an interval, for two classes."""
OF_THE_SECOND = ("f1", "roc_auc", "pr_auc")
"""Metrics that are about one label of two, the second."""
RESAMPLED_OF_MANY = ("accuracy", "macro_f1")
"""Metrics with an interval, for more classes."""


def answers(probabilities: Floats) -> Labels:
    """Return the predicted class of each text, (N,)."""
    found = probabilities >= 0.5 if probabilities.ndim == 1 else probabilities.argmax(axis=1)
    return found.astype(np.int8)


def scores(labels: Labels, probabilities: Floats) -> dict[str, float]:
    """Compute accuracy, F1, mean cross-entropy in nats and Brier score; with two classes also ROC-AUC and PR-AUC.

    Balanced accuracy is the mean recall of the classes that occur (Brodersen et al. 2010).
    `f1` is the F1 of class 1 of two; with more classes, `macro_f1` is the mean F1 of those that occur.
    The Brier score (Brier 1950) is the mean of (p - y)^2, summed over the classes if there are more than two.
    `pr_auc` is the average precision. The areas are omitted if one class is missing.
    """
    if probabilities.ndim == 2:
        return _scores_of_many(labels, probabilities)
    predicted = probabilities >= 0.5
    figures = {
        "accuracy": accuracy_score(labels, predicted),
        "balanced_accuracy": _balanced_accuracy(labels, predicted),
        "f1": f1_score(labels, predicted, zero_division=0),
        "loss": log_loss(labels, probabilities.clip(CERTAIN, 1 - CERTAIN), labels=[0, 1]),
        "brier": brier_score_loss(labels, probabilities, pos_label=1),
    }
    if len(np.unique(labels)) == 2:
        figures["roc_auc"] = roc_auc_score(labels, probabilities)
        figures["pr_auc"] = average_precision_score(labels, probabilities)
    return {name: round(float(value), _DIGITS) for name, value in figures.items()}


def _scores_of_many(labels: Labels, probabilities: Floats) -> dict[str, float]:
    classes, predicted = np.arange(probabilities.shape[1]), answers(probabilities)
    possible = probabilities.clip(CERTAIN)
    whole = possible / possible.sum(axis=1, keepdims=True)  # rounded rows may not sum to 1
    figures = {
        "accuracy": accuracy_score(labels, predicted),
        "balanced_accuracy": _balanced_accuracy(labels, predicted),
        "macro_f1": f1_score(labels, predicted, labels=np.unique(labels), average="macro", zero_division=0),
        "loss": log_loss(labels, whole, labels=classes),
        "brier": ((whole - np.eye(len(classes))[labels]) ** 2).sum(axis=1).mean(),
    }
    return {name: round(float(value), _DIGITS) for name, value in figures.items()}


def _balanced_accuracy(labels: Labels, predicted: NDArray[Any]) -> float:
    present = np.unique(labels)
    return float(recall_score(labels, predicted, labels=present, average="macro", zero_division=0))


def differing(metric: str, one: Floats, two: Floats) -> int:
    """Count the texts on which two systems' probabilities differ in a way that affects the metric."""
    found = one != two if metric == "roc_auc" else answers(one) != answers(two)
    return int(found.reshape(len(found), -1).any(axis=1).sum())


def resampled_scores(labels: Labels, probabilities: Floats, samples: int) -> dict[str, Floats]:
    """Return bootstrap samples of accuracy and F1, with two classes also ROC-AUC, (samples,) each.

    ROC-AUC is NaN for a resample without one of the classes. Macro F1 is of the classes that occur in the resample.
    """
    if probabilities.ndim == 2:
        return _resampled_of_many(labels, probabilities, samples)
    actual, predicted = labels == 1, probabilities >= 0.5
    right, hits, answered = actual == predicted, actual & predicted, actual.astype(int) + predicted
    area = _RocAuc(actual, probabilities)

    def score(weights: Floats) -> tuple[float, float, float]:
        return weights @ right / len(labels), 2 * (weights @ hits) / max(weights @ answered, 1), area(weights)

    table = bootstrap(score, len(labels), samples).reshape(-1, len(RESAMPLED))
    return dict(zip(RESAMPLED, table.T, strict=True))


def _resampled_of_many(labels: Labels, probabilities: Floats, samples: int) -> dict[str, Floats]:
    one_hot = np.eye(probabilities.shape[1])
    actual, predicted = one_hot[labels], one_hot[answers(probabilities)]
    hits, counts = actual * predicted, actual + predicted

    def score(weights: Floats) -> tuple[float, float]:
        f1 = 2 * (weights @ hits) / np.maximum(weights @ counts, 1)
        return weights @ hits.sum(axis=1) / len(labels), float(f1[weights @ actual > 0].mean())

    table = bootstrap(score, len(labels), samples).reshape(-1, len(RESAMPLED_OF_MANY))
    return dict(zip(RESAMPLED_OF_MANY, table.T, strict=True))


class _RocAuc:
    """Probability that a positive text ranks above a negative one; ties count half (Hanley and McNeil 1982)."""

    def __init__(self, actual: NDArray[np.bool_], positive: Floats) -> None:
        _, self._rank = np.unique(positive, return_inverse=True)
        self._actual = actual
        self._ranks = int(self._rank.max(initial=-1)) + 1

    def __call__(self, weights: Floats) -> float:
        """Return the area with each text counted `weights` (N,) times; NaN if a class is missing."""
        ones = np.bincount(self._rank, weights * self._actual, minlength=self._ranks)
        zeros = np.bincount(self._rank, weights * ~self._actual, minlength=self._ranks)
        pairs = ones.sum() * zeros.sum()
        below = np.cumsum(zeros) - zeros / 2
        return float(ones @ below / pairs) if pairs else float("nan")


def confusion(labels: Labels, probabilities: Floats, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return rows of actual class, predicted class and count."""
    matrix = confusion_matrix(labels, answers(probabilities), labels=range(len(names)))
    return [
        (actual, predicted, int(matrix[i, j])) for i, actual in enumerate(names) for j, predicted in enumerate(names)
    ]


def by_class(labels: Labels, probabilities: Floats, names: Sequence[str]) -> list[tuple[str, int, float, float, float]]:
    """Return rows of class, number of texts, recall, precision and F1; undefined metrics are 0."""
    found = precision_recall_fscore_support(labels, answers(probabilities), labels=range(len(names)), zero_division=0)
    precision, recall, f1, texts = (values.tolist() for values in found)
    rows = zip(names, texts, recall, precision, f1, strict=True)
    return [(name, int(n), round(r, _DIGITS), round(p, _DIGITS), round(f, _DIGITS)) for name, n, r, p, f in rows]


def roc(labels: Labels, probabilities: Floats) -> list[tuple[float, float]]:
    """Return points (false, true positive rate) of the ROC curve of class 1 of two; empty if it is undefined."""
    if probabilities.ndim == 2 or len(np.unique(labels)) < 2:
        return []
    false_rate, true_rate, _ = roc_curve(labels, probabilities)
    return _thinned(false_rate, true_rate)


def precision_recall(labels: Labels, probabilities: Floats) -> list[tuple[float, float]]:
    """Return points (recall, precision) of the precision-recall curve of class 1 of two; empty if it is undefined."""
    if probabilities.ndim == 2 or len(np.unique(labels)) < 2:
        return []
    precision, recall, _ = precision_recall_curve(labels, probabilities)
    return _thinned(recall[::-1], precision[::-1])


def accuracy_by_length(labels: Labels, probabilities: Floats, lengths: Sequence[int]) -> list[tuple[str, int, float]]:
    """Return accuracy by number of words, in five bins of about equal size: name, number of texts, accuracy."""
    right = labels == answers(probabilities)
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


def confident_errors(labels: Labels, probabilities: Floats, count: int) -> list[int]:
    """Return the indices of the at most `count` most confidently misclassified texts, most confident first."""
    wrong = np.flatnonzero(labels != answers(probabilities))
    given = probabilities[wrong]
    order = np.argsort(-(np.abs(given - 0.5) if given.ndim == 1 else given.max(axis=1)), kind="stable")
    found: list[int] = wrong[order][:count].tolist()
    return found


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Subsample a curve to at most `_POINTS` of its points, without interpolation."""
    kept = np.unique(np.linspace(0, len(x) - 1, min(_POINTS, len(x))).round().astype(int))
    return [(round(float(x[i]), _DIGITS), round(float(y[i]), _DIGITS)) for i in kept]
