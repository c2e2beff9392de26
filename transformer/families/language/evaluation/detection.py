"""How well a discriminator finds the tokens that its generator replaced.

Texts are corrupted as in training, but so that every token is judged alike: in each of `apart` passes over a text one
token of so many is hidden, and the generator draws another, or the same, in its place. A token drawn as it was counts
as the text's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.evaluation.bootstrap import Floats, bootstrap, comparison_figures, interval_figures
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.detecting import judged
from transformer.families.language.decoding.scoring import Pass, passes_over
from transformer.families.language.decoding.with_torch import TorchEngine

_TEXTS = 256  # whose windows are in memory at a time
_DIGITS = 6
_SHOWN = 10  # texts of a split whose first pass is kept
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


class Corrupted(NamedTuple):
    """A window in which tokens were replaced, and what the discriminator says."""

    text: int
    ids: Ids
    """(T,), from begin to end token."""
    own: Ids
    """(T,) The text's own."""
    probabilities: Floats
    """(T,) That they were replaced."""


class Detected(NamedTuple):
    """The judgement of many texts."""

    counts: Counts
    probabilities: Floats
    """(K,) Of all judged tokens."""
    replaced: Floats
    """(K,) 1 where they were."""
    shown: list[Corrupted]
    """The first window of the first texts."""


def detect(engine: TorchEngine, sequences: Sequence[Ids], params: AnswerParams, observer: Observer) -> Detected:
    """Corrupt encoded texts, from begin to end token, and judge their tokens; draws depend on (seed, text's number)."""
    sums = np.zeros((len(sequences), len(COLUMNS)))
    probabilities, labels = [np.empty(0)], [np.empty(0)]
    shown: list[Corrupted] = []
    starts = range(0, len(sequences), _TEXTS)
    for start in observer.progress(starts, total=len(starts), what="detect"):
        for each in _corrupted(engine, sequences[start : start + _TEXTS], start, params):
            found, replaced = each.probabilities[1:-1], (each.ids != each.own)[1:-1]
            positive = found > 0.5
            sums[each.text] += len(found), replaced.sum(), (positive & replaced).sum(), (positive & ~replaced).sum()
            probabilities.append(found)
            labels.append(replaced.astype(np.float64))
            if each.text < _SHOWN and not any(other.text == each.text for other in shown):
                shown.append(each)
    return Detected(Counts(*sums.T), np.concatenate(probabilities), np.concatenate(labels), shown)


def _corrupted(engine: TorchEngine, texts: Sequence[Ids], first: int, params: AnswerParams) -> Iterator[Corrupted]:
    passes = [each for text, ids in enumerate(texts, first) for each in passes_over(engine, text, ids, params)]
    random = {text: np.random.default_rng((params.seed, text)) for text in range(first, first + len(texts))}
    draws = [random[each.text].random(len(each.places)) for each in passes]
    own = [_with(each, each.targets) for each in passes]
    given: list[Ids] = [*own]
    for rows in sorted_batches(np.array([len(each.given) for each in passes], dtype=np.int64), params.batch_size):
        batch = [passes[row] for row in rows]
        ids = padded([each.given for each in batch], engine.pad_id)
        places = np.concatenate([each.places + number * ids.shape[1] for number, each in enumerate(batch)])
        tokens = engine.replacements(ids, places, np.concatenate([draws[row] for row in rows]))
        parts = np.split(tokens, np.cumsum([len(each.places) for each in batch])[:-1])
        for row, each, part in zip(rows, batch, parts, strict=True):
            given[row] = _with(each, part)
    found = judged(engine, given, params.batch_size)
    for each, ids, whole, probabilities in zip(passes, given, own, found, strict=True):
        yield Corrupted(each.text, ids, whole, probabilities.astype(np.float64))


def _with(given: Pass, tokens: Ids) -> Ids:
    """The window with these tokens at the hidden places."""
    ids = given.given.copy()
    ids[given.places] = tokens
    return ids


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


def detection_figures(found: Detected, *, samples: int, baseline: Counts | None = None) -> dict[str, float]:
    """All scores of a split with intervals, the area under the ROC curve, and the accuracy without looking."""
    own, drawn = scores(found.counts), resampled(found.counts, samples)
    tokens, replaced = found.counts.judged.sum(), found.counts.replaced.sum()
    figures = {name: round(value, _DIGITS) for name, value in own.items()} | interval_figures(drawn)
    figures |= {
        "detection_auc": round(area(found.probabilities, found.replaced), _DIGITS),
        "undetected_accuracy": round(1 - float(replaced / max(tokens, 1)), _DIGITS),
        "judged": int(tokens),
        "replaced": int(replaced),
    }
    if baseline is None:
        return figures
    their, others = scores(baseline), resampled(baseline, samples)
    observed = {name: (own[name], their[name]) for name in METRICS}
    return figures | comparison_figures("baseline", observed, {name: (drawn[name], others[name]) for name in METRICS})


def area(probabilities: Floats, labels: Floats) -> float:
    """The area under the ROC curve: the probability that a 1 ranks above a 0, ties half; 0.5 without one of both."""
    ones = float(labels.sum())
    zeros = len(labels) - ones
    if not ones or not zeros:
        return 0.5
    _, index, sizes = np.unique(probabilities, return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2
    return float((ranks[index] @ labels - ones * (ones + 1) / 2) / (ones * zeros))


def roc(found: Detected) -> list[tuple[float, float]]:
    """Points of the ROC curve: the shares of own and of replaced tokens above falling thresholds."""
    order = np.argsort(-found.probabilities, kind="stable")
    labels = found.replaced[order]
    hits, alarms = np.cumsum(labels), np.cumsum(1 - labels)
    if not len(order) or not hits[-1] or not alarms[-1]:
        return []
    places = np.unique(np.linspace(0, len(order) - 1, _POINTS).astype(np.int64))
    points = zip((alarms / alarms[-1])[places].tolist(), (hits / hits[-1])[places].tolist(), strict=True)
    return [(0.0, 0.0), *((round(x, _DIGITS), round(y, _DIGITS)) for x, y in points)]


def of_rows(rows: Sequence[Mapping[str, str]]) -> Counts:
    """The counts of rows of predictions.tsv. Raises ValueError or KeyError if they have none."""
    return Counts(*(np.array([float(row[name]) for row in rows]) for name in COLUMNS))
