"""Comparison of two systems' scores of the same texts."""

from collections.abc import Sequence

from transformer.core.task import Task
from transformer.evaluation.bootstrap import Floats
from transformer.families.language.evaluation.scores import METRICS, of_rows, resampled, scores
from transformer.families.language.evaluation.scores import differing as differing_texts

Row = dict[str, str]
SCORED_ANEW = False  # predictions.tsv has scores of texts, not model outputs


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the fields that must be equal in both systems' predictions."""
    return [(row["split"], row["text"]) for row in rows]


def scored(task: Task, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Return the score and its bootstrap samples, per system and metric."""
    found = []
    for rows in systems:
        counts = of_rows(rows, [row["text"] for row in rows])
        own, drawn = scores(counts), resampled(counts, samples)
        found.append({name: (own[name], drawn[name]) for name in METRICS})
    return found


def differing(metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
    """Count the texts on which two systems differ in a way that affects the metric."""
    return differing_texts(metric, of_rows(one, ()), of_rows(two, ()))
