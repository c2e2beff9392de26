"""Metrics of a language model on one split, computed from the log probability of each text.

Perplexity is exp of the mean loss per token, so it depends on the vocabulary; word perplexity and bits per byte are
comparable across vocabularies, if neither has unknown tokens.
"""

import math
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transformer.data.leakage import word_count
from transformer.evaluation.bootstrap import Floats, bootstrap, comparison_figures, interval_figures

DIGITS = 6
_WIDTH = 1.96  # standard errors on each side of a mean
_HIGHEST = 700.0  # exp of a larger loss overflows
METRICS = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy")
PER_TEXT = ("word_perplexity", "bits_per_byte")
"""Metrics that do not depend on the vocabulary, if it covers all words."""


class Texts(NamedTuple):
    """Counts per text, (N,) each."""

    nats: Floats
    """Negative log probability."""
    tokens: Floats
    """Number of predicted tokens."""
    words: Floats
    """Number of words, by `word_count`."""
    bytes: Floats
    """Length in UTF-8 bytes."""
    right: Floats
    """Number of correctly predicted tokens."""


def counted(texts: Sequence[str], found: Sequence[tuple[float, int, int]]) -> Texts:
    """Count raw texts; found: log probability, tokens and correct tokens of each (`TextScore`)."""
    return Texts(
        np.array([-log_probability for log_probability, _, _ in found]),
        np.array([float(tokens) for _, tokens, _ in found]),
        np.array([float(word_count(text)) for text in texts]),
        np.array([float(len(text.encode())) for text in texts]),
        np.array([float(right) for _, _, right in found]),
    )


def scores(texts: Texts, weights: Floats | None = None) -> dict[str, float]:
    """Compute `METRICS` and the loss in nats per token; weights: count of each text (N,), default 1."""
    nats, tokens, words, size, right = (
        float(column.sum() if weights is None else weights @ column) for column in texts
    )
    loss = nats / max(tokens, 1)
    return {
        "perplexity": math.exp(min(loss, _HIGHEST)),
        "word_perplexity": math.exp(min(nats / max(words, 1), _HIGHEST)),
        "bits_per_byte": nats / math.log(2) / max(size, 1),
        "accuracy": right / max(tokens, 1),
        "loss": loss,
    }


def resampled(texts: Texts, samples: int) -> dict[str, Floats]:
    """Compute `METRICS` on bootstrap resamples of the texts, (samples,) each."""
    found = bootstrap(lambda weights: [*scores(texts, weights).values()], len(texts.nats), samples)
    return {name: found[:, number] if found.size else np.empty(0) for number, name in enumerate(METRICS)}


def split_figures(
    texts: Texts, *, samples: int, baseline: Texts | None = None, compared: Container[str] = ()
) -> dict[str, float]:
    """Compute all metrics of a split with intervals, and the differences to a baseline on the same texts.

    compared: the metrics to compare.
    """
    own, drawn = scores(texts), resampled(texts, samples)
    figures = {name: round(value, DIGITS) for name, value in own.items()} | interval_figures(drawn)
    figures |= {name: int(getattr(texts, name).sum()) for name in ("tokens", "words", "bytes")}
    if baseline is None:
        return figures
    their, their_drawn = scores(baseline), resampled(baseline, samples)
    names = [name for name in drawn if name in compared]
    observed = {name: (own[name], their[name]) for name in names}
    return figures | comparison_figures(
        "baseline",
        observed,
        {name: (drawn[name], their_drawn[name]) for name in names},
        {name: differing(name, texts, baseline) for name in names},
    )


def differing(metric: str, one: Texts, two: Texts) -> int:
    """Count the texts on which two models differ in a way that affects the metric."""
    if metric == "accuracy":
        return int(((one.right != two.right) | (one.tokens != two.tokens)).sum())
    return int((one.nats != two.nats).sum())


def by_place(nats: Floats, counts: Floats, squares: Floats) -> list[tuple[str, int, float, float, float]]:
    """Return rows of context position (0, 1, 2-3, 4-7, ...), number of predicted tokens, and mean loss in nats.

    Each ends with the 95 % interval of the mean, by its standard error over the tokens.

    nats, counts, squares: summed loss, number of predicted tokens and summed squares at each position, (L,).
    """
    rows, start = [], 0
    while start < len(counts):
        stop = max(1, 2 * start)
        count = counts[start:stop].sum()
        if count:
            name = str(start) if stop - start == 1 else f"{start}-{min(stop, len(counts)) - 1}"
            mean = float(nats[start:stop].sum() / count)
            error = math.sqrt(max(float(squares[start:stop].sum() / count) - mean**2, 0.0) / count)
            low, high = (round(mean + sign * _WIDTH * error, DIGITS) for sign in (-1, 1))
            rows.append((name, int(count), round(mean, DIGITS), low, high))
        start = stop
    return rows


def of_rows(rows: Sequence[Mapping[str, str]], texts: Sequence[str]) -> Texts:
    """Count the texts of predictions.tsv rows. Raises ValueError or KeyError if the rows are invalid."""
    found = [(float(row["log_probability"]), int(row["tokens"]), int(row["right"])) for row in rows]
    if not all(math.isfinite(log_probability) for log_probability, _, _ in found):
        raise ValueError("`log_probability` is not finite")
    return counted(texts, found)
