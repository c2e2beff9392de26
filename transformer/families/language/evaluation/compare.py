"""Compares two systems' scores of the same texts."""

from collections.abc import Sequence

from transformer.core.task import Task
from transformer.evaluation.bootstrap import Floats
from transformer.families.language.evaluation.scores import METRICS, of_rows, resampled, scores
from transformer.families.language.evaluation.scores import differing as differing_texts

Row = dict[str, str]
SCORED_ANEW = False  # predictions.tsv has the scores of texts, not what the model said


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The fields that must be the same in both systems' predictions."""
    return [(row["split"], row["text"]) for row in rows]


def scored(task: Task, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Per system and metric, the score and its bootstrap samples."""
    found = []
    for rows in systems:
        counts = of_rows(rows, [row["text"] for row in rows])
        own, drawn = scores(counts), resampled(counts, samples)
        found.append({name: (own[name], drawn[name]) for name in METRICS})
    return found


def differing(metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
    """The texts that two systems score differently, as far as the metric counts them."""
    return differing_texts(metric, of_rows(one, ()), of_rows(two, ()))
