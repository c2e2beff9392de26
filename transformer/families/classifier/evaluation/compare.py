"""Comparison of two systems' predictions for the same texts."""

from collections.abc import Sequence

import numpy as np

from transformer.core.task import Task
from transformer.evaluation.bootstrap import Floats
from transformer.families.classifier.evaluation.scores import resampled_scores, scores

Row = dict[str, str]
SCORED_ANEW = True


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the fields that must be equal in both systems' predictions."""
    return [(row["text"], row["label"]) for row in rows]


def scored(task: Task, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Return per system the accuracy and F1, with two classes also ROC-AUC: score and bootstrap samples, by metric.

    If a corpus defines its own two labels, the positive one is unknown here, so only accuracy is computed.
    """
    names = {row[column] for rows in systems for row in rows for column in ("label", "prediction")}
    if names <= {*task.classes} and not _of_many(systems):
        return [_scored(rows, task.classes, samples, of_the_second=len(task.classes) == 2) for rows in systems]
    found = [_scored(rows, sorted(names), samples, of_the_second=False) for rows in systems]
    return [{name: each[name] for name in each if len(names) > 2 or name == "accuracy"} for each in found]


def differing(metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
    """Count the texts on which two systems differ in a way that affects the metric."""
    names = ("prediction", "probability") if metric == "roc_auc" else ("prediction",)
    return sum(any(first[name] != second[name] for name in names) for first, second in zip(one, two, strict=True))


def _of_many(systems: Sequence[Sequence[Row]]) -> bool:
    """True if a prediction has a probability too low for the better of two classes."""
    return any(float(row["probability"]) < 0.4999 for rows in systems for row in rows)


def _scored(
    rows: Sequence[Row], classes: Sequence[str], samples: int, *, of_the_second: bool
) -> dict[str, tuple[float, Floats]]:
    """of_the_second: use the probabilities as those of the second class; else use the predictions alone."""
    labels = np.array([classes.index(row["label"]) for row in rows], dtype=np.int8)
    answered = np.array([classes.index(row["prediction"]) for row in rows])
    probability = np.array([max(float(row["probability"]), 0.500001) for row in rows])  # 0.5 means the second class
    # With many classes the file only has the prediction's probability. A split may contain only one or two of them.
    given = (
        np.where(answered == 1, probability, 1 - probability)
        if of_the_second
        else np.eye(max(2, len(classes)))[answered]
    )
    own, drawn = scores(labels, given), resampled_scores(labels, given, samples)
    return {name: (own[name], values) for name, values in drawn.items() if name in own}
