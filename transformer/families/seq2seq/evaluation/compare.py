"""Comparison of two systems' translations of the same sentences."""

from collections.abc import Sequence

from transformer.core.task import Task
from transformer.evaluation.bootstrap import Floats
from transformer.families.seq2seq.evaluation.scores import text_metrics, writes_capitals

Row = dict[str, str]
SCORED_ANEW = True
_COMPARED = ("hypothesis", "reference")


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the fields that must be equal in both systems' predictions."""
    return [(row["source"], row["reference"]) for row in rows]


def scored(task: Task, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Return per system the metrics on plain text, independent of tokens: score and bootstrap samples, by name.

    They are cased if all systems write capital letters. If only some do, chrF is named as lowercased.
    """
    capitals = [writes_capitals(row["hypothesis"] for row in rows) for rows in systems]
    found = (text_metrics(*(_column(rows, name) for name in _COMPARED), cased=all(capitals)) for rows in systems)
    names = {"chrf": "chrf_lowercased"} if any(capitals) and not all(capitals) else {}
    return [
        {names.get(name, name): (m.score(), m.resampled(samples)) for name, m in metrics.items()} for metrics in found
    ]


def differing(metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
    """Count the texts that two systems translate differently."""
    return sum(map(str.__ne__, _column(one, "hypothesis"), _column(two, "hypothesis")))


def _column(rows: Sequence[Row], name: str) -> list[str]:
    return [row[name] for row in rows]
