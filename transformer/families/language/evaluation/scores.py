"""The scores of a language model on one split, from the log probability of each text.

Perplexity is exp of the mean loss per token, so it depends on the vocabulary; per word and in bits per byte, models
with different vocabularies can be compared, if neither meets unknown tokens.
"""

import math
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transformer.evaluation.bootstrap import Floats, bootstrap, comparison_figures, interval_figures
from transformer.evaluation.leakage import word_count

DIGITS = 6
_HIGHEST = 700.0  # exp of a larger loss exceeds a float
METRICS = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy")
PER_TEXT = ("word_perplexity", "bits_per_byte")
"""Those that do not depend on the vocabulary, if it knows all words."""


class Texts(NamedTuple):
    """What each text counts, (N,) each."""

    nats: Floats
    """The negative log probability."""
    tokens: Floats
    """Predicted ones."""
    words: Floats
    """As `word_count`."""
    bytes: Floats
    """Of the text in UTF-8."""
    right: Floats
    """Tokens predicted right."""


def counted(texts: Sequence[str], found: Sequence[tuple[float, int, int]]) -> Texts:
    """The counts of raw texts; found: of each, its log probability, tokens and right tokens (`TextScore`)."""
    return Texts(
        np.array([-log_probability for log_probability, _, _ in found]),
        np.array([float(tokens) for _, tokens, _ in found]),
        np.array([float(word_count(text)) for text in texts]),
        np.array([float(len(text.encode())) for text in texts]),
        np.array([float(right) for _, _, right in found]),
    )


def scores(texts: Texts, weights: Floats | None = None) -> dict[str, float]:
    """`METRICS` and the loss in nats per token; weights: how often each text counts (N,), default once."""
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
    """`METRICS` of every bootstrap resample of the texts, (samples,) each."""
    found = bootstrap(lambda weights: [*scores(texts, weights).values()], len(texts.nats), samples)
    return {name: found[:, number] if found.size else np.empty(0) for number, name in enumerate(METRICS)}


def split_figures(
    texts: Texts, *, samples: int, baseline: Texts | None = None, compared: Container[str] = ()
) -> dict[str, float]:
    """All scores of a split with intervals, and its lead over the baseline's answers for the same texts.

    compared: the metrics of that lead.
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
    """The texts on which two models differ, as far as the metric counts them."""
    if metric == "accuracy":
        return int(((one.right != two.right) | (one.tokens != two.tokens)).sum())
    return int((one.nats != two.nats).sum())


def by_place(nats: Floats, counts: Floats) -> list[tuple[str, int, float]]:
    """Place in the context, predicted tokens and their mean loss in nats; places 0, 1, 2-3, 4-7, ...

    nats, counts: the summed loss and the number of predicted tokens at each place, (L,).
    """
    rows, start = [], 0
    while start < len(counts):
        stop = max(1, 2 * start)
        count = counts[start:stop].sum()
        if count:
            name = str(start) if stop - start == 1 else f"{start}-{min(stop, len(counts)) - 1}"
            rows.append((name, int(count), round(float(nats[start:stop].sum() / count), DIGITS)))
        start = stop
    return rows


def of_rows(rows: Sequence[Mapping[str, str]], texts: Sequence[str]) -> Texts:
    """The counts of rows of predictions.tsv. Raises ValueError or KeyError if they are not such rows."""
    found = [(float(row["log_probability"]), int(row["tokens"]), int(row["right"])) for row in rows]
    if not all(math.isfinite(log_probability) for log_probability, _, _ in found):
        raise ValueError("`log_probability` is not finite")
    return counted(texts, found)
