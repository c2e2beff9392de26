"""Generate one hypothesis per row, token by token: greedy search, and sampling with temperature, top-k (Fan et al.
2018) and top-p (Holtzman et al. 2020).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary
from transformer.inference.search import Blocked, Generator, Hypothesis, SearchParams, Sources

Scores = NDArray[np.floating[Any]]
_FEW = 4


def repeating(history: Ids, ngram: int | None) -> Blocked | None:
    """Find continuations of history (R, T) that would repeat an n-gram of length `ngram`; None blocks nothing."""
    if ngram is None or history.shape[1] < ngram:
        return None
    runs = np.lib.stride_tricks.sliding_window_view(history, ngram, axis=1)  # (R, T - ngram + 1, ngram)
    tail = history[:, history.shape[1] - ngram + 1 :]  # (R, ngram - 1): the prefix that the next token would complete
    row, start = (runs[:, :, :-1] == tail[:, None]).all(axis=-1).nonzero()
    return row, runs[row, start, -1]


def best(scores: Scores, count: int) -> tuple[Scores, Ids]:
    """Return the `count` largest scores per row (R, W) and their indices, (R, min(count, W)) each, in descending order.

    Ties are in the order of their indices.
    """
    if count * _FEW < scores.shape[1]:  # sorting all would then dominate the step's time
        least = np.partition(scores, -count, axis=1)[:, -count, None]
        kept = scores >= least
        if (kept.sum(axis=1) == count).all():  # no ties for the last place
            places = kept.nonzero()[1].reshape(-1, count)
            values, order = best(np.take_along_axis(scores, places, axis=1), count)
            return values, np.take_along_axis(places, order, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, order, axis=1), order


Choice = Callable[[Ids, Any, Blocked | None, Ids, int], tuple[Scores, Ids]]
"""Last tokens (R,), cache, blocked tokens, row numbers (R,), number of tokens so far -> log probability and next token
per row, (R,)."""
_FIRST = 32  # entries sorted for top-p at first, and the growth factor


def extend(
    model: Generator, sources: Sources, target: Vocabulary, params: SearchParams, choose: Choice, copies: int = 1
) -> list[list[Hypothesis]]:
    """Extend `copies` rows per source with tokens from `choose`; rows leave the batch when they end.

    Row i * copies + j is copy j of source i. Returns each source's copies.
    """
    cache = model.start(sources.ids)
    active = np.arange(len(sources.ids) * copies)
    if copies > 1:
        cache.select(active // copies)
    limits = np.repeat(sources.limits, copies)
    found: list[Hypothesis | None] = [None] * len(active)
    last = np.repeat(sources.first, copies)
    history = np.empty((len(active), 0), dtype=np.int64)
    totals = np.zeros(len(active))
    while len(active):
        blocked = repeating(history, params.no_repeat_ngram)
        values, last = choose(last, cache, blocked, active, history.shape[1])
        totals = totals + values
        history = np.concatenate((history, last[:, None]), axis=1)
        leaving = (last == target.end_id) | (limits[active] <= history.shape[1])
        if leaving.any():
            ended = active[leaving].tolist(), history[leaving].tolist(), totals[leaving].tolist()
            for row, ids, total in zip(*ended, strict=True):
                found[row] = hypothesis(ids, total, target.end_id, params)
            staying = (~leaving).nonzero()[0]
            active, last, history, totals = active[staying], last[staying], history[staying], totals[staying]
            if len(active):
                cache.select(staying)
    rows = [each for each in found if each is not None]
    return [rows[start : start + copies] for start in range(0, len(rows), copies)]


def hypothesis(ids: list[int], log_probability: float, end_id: int, params: SearchParams) -> Hypothesis:
    """Make a hypothesis from generated ids, which may end with the end token."""
    finished = ids[-1] == end_id
    score = params.normalized(log_probability, len(ids))
    return Hypothesis(ids[:-1] if finished else ids, score, log_probability, finished)


def greedy_search(
    model: Generator, sources: Sources, target: Vocabulary, params: SearchParams
) -> list[list[Hypothesis]]:
    """Decode greedily: take the most probable next token; of ties, the first."""

    def choose(last: Ids, cache: Any, blocked: Blocked | None, rows: Ids, step: int) -> tuple[Scores, Ids]:
        values, tokens = model.best(last, cache, 1, blocked)
        return values[:, 0], tokens[:, 0]

    return extend(model, sources, target, params, choose)


def sample(model: Generator, sources: Sources, target: Vocabulary, params: SearchParams) -> list[list[Hypothesis]]:
    """Draw `n_best` independent samples per source, in the order of their numbers; duplicates are possible.

    Sample j of sentence number i has its own random numbers, seeded by (seed, i, j), so batching does not matter, but
    for near-ties. The parts of a split sentence also have their own. Scores and log probabilities are the model's,
    before temperature, top-k and top-p.
    """
    uniform = np.stack(
        [
            np.random.default_rng((params.seed, number, draw, *part)).random(max(sources.limits))
            for number, *part in sources.seeds
            for draw in range(params.n_best)
        ]
    )

    def choose(last: Ids, cache: Any, blocked: Blocked | None, rows: Ids, step: int) -> tuple[Scores, Ids]:
        log_probabilities = model.log_probabilities(last, cache, blocked)
        tokens = draw_tokens(log_probabilities, uniform[rows, step], params)
        return np.take_along_axis(log_probabilities, tokens[:, None], axis=1)[:, 0], tokens

    return extend(model, sources, target, params, choose, copies=params.n_best)


def best_first(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses by descending score; ties keep their order."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def draw_tokens(log_probabilities: Scores, uniform: NDArray[np.float64], params: SearchParams) -> Ids:
    """Draw one token per row, (R,), by inverting the cumulative distribution at uniform (R,) in [0, 1).

    log_probabilities: (R, V). Temperature is applied first, then top-k, then top-p. Tokens are in vocabulary order: an
    order by probability changes with the last bits, so that near-ties would draw different tokens in different batches.
    """
    scaled: Scores = log_probabilities.astype(np.float64) / params.temperature
    tokens = np.broadcast_to(np.arange(scaled.shape[1]), scaled.shape)
    if params.top_k is not None:
        scaled, tokens = best(scaled, params.top_k)
    probabilities = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    if params.top_p is not None:
        probabilities, places = _nucleus(probabilities, params.top_p)
        tokens = np.take_along_axis(tokens, places, axis=1)
    if params.top_k is not None or params.top_p is not None:
        order = tokens.argsort(axis=1)
        tokens, probabilities = (np.take_along_axis(each, order, axis=1) for each in (tokens, probabilities))
    mass = probabilities.cumsum(axis=1)
    position = (mass <= uniform[:, None] * mass[:, -1:]).sum(axis=1)
    last = mass.shape[1] - 1 - (probabilities > 0)[:, ::-1].argmax(axis=1)  # rounding could exceed the last entry
    chosen: Ids = np.take_along_axis(tokens, np.minimum(position, last)[:, None], axis=1)[:, 0]
    return chosen


def _nucleus(probabilities: Scores, share: float) -> tuple[Scores, Ids]:
    """Return the most probable entries per row (R, W) that make up `share` of its probability, 0 after them; and their
    indices.

    Only as many entries are sorted as needed.
    """
    count = _FIRST
    while True:
        kept, places = best(probabilities, count)
        mass = kept.cumsum(axis=1)
        if count >= probabilities.shape[1] or (mass[:, -1] >= share).all():
            break
        count *= _FIRST
    kept[:, 1:][mass[:, :-1] >= share] = 0.0
    return kept, places
