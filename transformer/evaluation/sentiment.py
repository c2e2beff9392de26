"""Scores of a binary classifier, by scikit-learn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, roc_auc_score, roc_curve

_ROC_POINTS = 200  # enough for a smooth line, whatever the number of reviews


def scores(labels: NDArray[np.int8], positive: NDArray[np.float64]) -> dict[str, float]:
    """Accuracy, F1 of the positive class, area under the ROC curve, and mean cross-entropy in nats.

    labels: (N,) of 0 and 1; positive: (N,) probabilities of 1. AUC is left out where one class is missing.
    """
    predicted = positive >= 0.5
    figures = {
        "accuracy": accuracy_score(labels, predicted),
        "f1": f1_score(labels, predicted, zero_division=0),
        "loss": log_loss(labels, positive, labels=[0, 1]),
    }
    if len(np.unique(labels)) == 2:
        figures["roc_auc"] = roc_auc_score(labels, positive)
    return {name: round(float(value), 6) for name, value in figures.items()}


def confusion(
    labels: NDArray[np.int8], positive: NDArray[np.float64], names: Sequence[str]
) -> list[tuple[str, str, int]]:
    """Rows of actual class, predicted class and their number."""
    matrix = confusion_matrix(labels, positive >= 0.5, labels=range(len(names)))
    return [
        (actual, predicted, int(matrix[i, j])) for i, actual in enumerate(names) for j, predicted in enumerate(names)
    ]


def roc(labels: NDArray[np.int8], positive: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Points of the ROC curve: false and true positive rate."""
    if len(np.unique(labels)) < 2:
        return []
    false_rate, true_rate, _ = roc_curve(labels, positive)
    grid = np.linspace(0, 1, min(_ROC_POINTS, len(false_rate)))
    return [
        (round(float(x), 6), round(float(y), 6))
        for x, y in zip(grid, np.interp(grid, false_rate, true_rate), strict=True)
    ]
