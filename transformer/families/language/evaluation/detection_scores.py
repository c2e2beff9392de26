"""The scores of a discriminator on one split, from what it says of each token."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transformer.evaluation.bootstrap import Floats, bootstrap, comparison_figures, interval_figures

_DIGITS = 6
_POINTS = 100
METRICS = ("detection_accuracy", "detection_precision", "detection_recall")
COLUMNS = ("judged", "replaced", "found", "false_alarms")
"""Of predictions.tsv: the counts of each text."""


class Counts(NamedTuple):
    """What each text counts, (N,) each; a token is counted once per pass."""

    judged: Floats
    """Tokens."""
    replaced: Floats
    """Those that are not the text's own."""
    found: Floats
    """Replaced ones with a probability above 0.5."""
    false_alarms: Floats
    """The text's own with a probability above 0.5."""


def scores(counts: Counts, weights: Floats | None = None) -> dict[str, float]:
    """`METRICS`; weights: how often each text counts (N,), default once. Undefined ones are 0."""
    tokens, replaced, found, alarms = (
        float(column.sum() if weights is None else weights @ column) for column in counts
    )
    values = (
        1 - (replaced - found + alarms) / max(tokens, 1),
        found / max(found + alarms, 1),
        found / max(replaced, 1),
    )
    return dict(zip(METRICS, values, strict=True))


def resampled(counts: Counts, samples: int) -> dict[str, Floats]:
    """`METRICS` of every bootstrap resample of the texts, (samples,) each."""
    drawn = bootstrap(lambda weights: [*scores(counts, weights).values()], len(counts.judged), samples)
    return {name: drawn[:, number] if drawn.size else np.empty(0) for number, name in enumerate(METRICS)}


def detection_figures(
    counts: Counts,
    probabilities: Floats,
    labels: Floats,
    *,
    samples: int,
    baseline: Counts | None = None,
    compared: Container[str] = (),
) -> dict[str, float]:
    """All scores of a split with intervals, the area under the ROC curve, and the accuracy without looking.

    probabilities, labels: of all judged tokens, (K,), as in `area`; compared: the metrics of the lead over the
    baseline.
    """
    own, drawn = scores(counts), resampled(counts, samples)
    tokens, replaced = counts.judged.sum(), counts.replaced.sum()
    figures = {name: round(value, _DIGITS) for name, value in own.items()} | interval_figures(drawn)
    figures |= {
        "detection_auc": round(area(probabilities, labels), _DIGITS),
        "undetected_accuracy": round(1 - float(replaced / max(tokens, 1)), _DIGITS),
        "judged": int(tokens),
        "replaced": int(replaced),
    }
    if baseline is None:
        return figures
    their, others = scores(baseline), resampled(baseline, samples)
    names = [name for name in METRICS if name in compared]
    observed = {name: (own[name], their[name]) for name in names}
    resamples = {name: (drawn[name], others[name]) for name in names}
    unlike = {name: differing(name, counts, baseline) for name in names}
    return figures | comparison_figures("baseline", observed, resamples, unlike)


def differing(metric: str, one: Counts, two: Counts) -> int:
    """The texts on which two discriminators differ, as far as the metric counts them."""
    pairs = zip(_counted(metric, one), _counted(metric, two), strict=True)
    return int(np.any([ours != theirs for ours, theirs in pairs], axis=0).sum())


def _counted(metric: str, counts: Counts) -> tuple[Floats, Floats]:
    if metric == "detection_accuracy":
        return counts.judged, counts.replaced - counts.found + counts.false_alarms
    return counts.found, counts.false_alarms if metric == "detection_precision" else counts.replaced


def area(probabilities: Floats, labels: Floats) -> float:
    """The area under the ROC curve: the probability that a 1 ranks above a 0, ties half; 0.5 without one of both."""
    ones = float(labels.sum())
    zeros = len(labels) - ones
    if not ones or not zeros:
        return 0.5
    _, index, sizes = np.unique(probabilities, return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2
    return float((ranks[index] @ labels - ones * (ones + 1) / 2) / (ones * zeros))


def roc(probabilities: Floats, labels: Floats) -> list[tuple[float, float]]:
    """Points of the ROC curve: the shares of 0s and of 1s from falling thresholds on; none without one of both."""
    order = np.argsort(-probabilities, kind="stable")
    labels, falling = labels[order], probabilities[order]
    hits, alarms = np.cumsum(labels), np.cumsum(1 - labels)
    if not len(order) or not hits[-1] or not alarms[-1]:
        return []
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # equal ones pass a threshold together
    places = ends[np.unique(np.linspace(0, len(ends) - 1, _POINTS).astype(np.int64))]
    points = zip((alarms / alarms[-1])[places].tolist(), (hits / hits[-1])[places].tolist(), strict=True)
    return [(0.0, 0.0), *((round(x, _DIGITS), round(y, _DIGITS)) for x, y in points)]


def of_rows(rows: Sequence[Mapping[str, str]]) -> Counts:
    """The counts of rows of predictions.tsv. Raises ValueError or KeyError if they have none."""
    return Counts(*(np.array([float(row[name]) for row in rows]) for name in COLUMNS))
