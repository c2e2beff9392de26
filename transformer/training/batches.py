"""The batches of an epoch."""

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams


def random_batches(lengths: NDArray[np.int64], params: TrainParams, epoch: int) -> list[Ids]:
    """All row numbers, shuffled for this epoch and batched as `params` say.

    lengths: (N,), a row's longest side in tokens. The same seed and epoch give the same batches. Rows are not bucketed
    by length: such batches train worse (measured in docs/design.md), and padding is not computed anyway (nn/layout.py).
    """
    order = np.random.default_rng([params.seed, epoch]).permutation(len(lengths))
    if params.batch_unit == "rows":
        return [order[start : start + params.batch_size] for start in range(0, len(order), params.batch_size)]
    return _filled(order, lengths, params.batch_size)


def pieces_of_like_length(rows: Ids, lengths: NDArray[np.int64], params: TrainParams) -> list[Ids]:
    """Split a batch of `batch_size` tokens into pieces that do not exceed it with padding, where padding is computed.

    lengths: as in `random_batches`. Random rows padded to the longest would be several times that many tokens.
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
    """Batches of at most `tokens` tokens; a longer row is a batch of its own."""
    ends = np.cumsum(lengths[order])
    batches, start, spent = [], 0, 0
    while start < len(order):
        end = max(int(np.searchsorted(ends, spent + tokens, side="right")), start + 1)
        batches.append(order[start:end])
        start, spent = end, int(ends[end - 1])
    return batches
