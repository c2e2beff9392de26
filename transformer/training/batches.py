"""The batches of an epoch."""

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams


def random_batches(lengths: NDArray[np.int64], params: TrainParams, epoch: int) -> list[Ids]:
    """All row numbers in an order drawn for this epoch, in batches as `params` say.

    lengths: (N,), a row's longest side in tokens. The same seed and epoch give the same batches. Rows of like length
    are not put together: batches of one length each train worse (docs/design.md has the figures), and padding is not
    computed anyway (nn/layout.py).
    """
    order = np.random.default_rng([params.seed, epoch]).permutation(len(lengths))
    if params.batch_unit == "rows":
        return [order[start : start + params.batch_size] for start in range(0, len(order), params.batch_size)]
    return _filled(order, lengths, params.batch_size)


def pieces_of_like_length(rows: Ids, lengths: NDArray[np.int64], params: TrainParams) -> list[Ids]:
    """The rows of a batch of so many tokens in pieces that are no larger with their padding, where that is computed.

    lengths: as in `random_batches`. Random rows that are padded to the longest are several times the tokens asked for.
    """
    if params.batch_unit == "rows":
        return [rows]
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    pieces, start = [], 0
    while start < len(ordered):
        end = start + max(1, params.batch_size // max(1, int(lengths[ordered[start]])))
        pieces.append(ordered[start:end])
        start = end
    return pieces


def _filled(order: Ids, lengths: NDArray[np.int64], tokens: int) -> list[Ids]:
    """Batches of at most `tokens` tokens; a row that is longer alone is a batch of its own."""
    ends = np.cumsum(lengths[order])
    batches, start, spent = [], 0, 0
    while start < len(order):
        end = max(int(np.searchsorted(ends, spent + tokens, side="right")), start + 1)
        batches.append(order[start:end])
        start, spent = end, int(ends[end - 1])
    return batches
