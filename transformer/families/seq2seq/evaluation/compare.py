"""Compares two systems' translations of the same sentences."""

from collections.abc import Sequence

from transformer.core.task import Task
from transformer.evaluation.bootstrap import Floats
from transformer.families.seq2seq.evaluation.scores import text_metrics, writes_capitals

Row = dict[str, str]
SCORED_ANEW = True
_COMPARED = ("hypothesis", "reference")


def texts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The fields that must be the same in both systems' predictions."""
    return [(row["source"], row["reference"]) for row in rows]


def scored(task: Task, systems: Sequence[Sequence[Row]], samples: int) -> list[dict[str, tuple[float, Floats]]]:
    """Per system, the metrics on plain text, which do not depend on its tokens: score and bootstrap samples, by name.

    They are cased if all of the systems write capital letters. If some do, chrF is named after its lowercased texts.
    """
    capitals = [writes_capitals(row["hypothesis"] for row in rows) for rows in systems]
    found = (text_metrics(*(_column(rows, name) for name in _COMPARED), cased=all(capitals)) for rows in systems)
    names = {"chrf": "chrf_lowercased"} if any(capitals) and not all(capitals) else {}
    return [
        {names.get(name, name): (m.score(), m.resampled(samples)) for name, m in metrics.items()} for metrics in found
    ]


def differing(metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
    """The texts that two systems translate differently."""
    return sum(map(str.__ne__, _column(one, "hypothesis"), _column(two, "hypothesis")))


def _column(rows: Sequence[Row], name: str) -> list[str]:
    return [row[name] for row in rows]
