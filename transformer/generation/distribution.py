"""Select the best next tokens, and find those that are blocked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids
from transformer.generation.interface import Blocked

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
