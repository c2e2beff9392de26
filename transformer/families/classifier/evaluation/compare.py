"""compare: two systems' answers to the same texts."""

from collections.abc import Sequence

import numpy as np

from transformer.evaluation.bootstrap import Floats
from transformer.families.classifier.evaluation.scores import resampled_scores, scores
from transformer.tasks.sentiment import LABELS

Row = dict[str, str]


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What must be the same in both systems' predictions."""
    return [(row["text"], row["label"]) for row in rows]


def scored(systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Of each system accuracy, F1 and ROC-AUC: score and resampled scores, by name."""
    return [_scored(rows, samples) for rows in systems]


def _scored(rows: Sequence[Row], samples: int) -> dict[str, tuple[float, Floats]]:
    labels = np.array([LABELS.index(row["label"]) for row in rows], dtype=np.int8)
    answered = np.array([LABELS.index(row["prediction"]) for row in rows])
    probability = np.array([float(row["probability"]) for row in rows])
    positive = np.where(answered == 1, probability, 1 - probability)
    own, drawn = scores(labels, positive), resampled_scores(labels, positive, samples)
    return {name: (own[name], values) for name, values in drawn.items() if name in own}
