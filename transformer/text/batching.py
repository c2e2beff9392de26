"""Batches of like length, so that little of them is padding."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ids = NDArray[np.int64]

_POOL = 100  # batches that are sorted together: long enough to match lengths, short enough to keep the order random


def bucketed_batches(lengths: NDArray[np.int64], batch_size: int, *, seed: int, epoch: int) -> list[Ids]:
    """All row numbers in batches of like length, in an order drawn for this epoch.

    lengths: (N,). The same seed and epoch give the same batches.
    """
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(lengths))
    batches = []
    for start in range(0, len(shuffled), _POOL * batch_size):
        pool = shuffled[start : start + _POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    return [batches[index] for index in generator.permutation(len(batches))]


def sorted_batches(lengths: NDArray[np.int64], batch_size: int) -> list[Ids]:
    """All row numbers in batches, the longest rows first, rows of one length in their order."""
    order = np.argsort(-lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def pad(sequences: Sequence[Ids], pad_id: int) -> Tensor:
    """Sequences of ids as one tensor (B, longest), padded at the end."""
    padded = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(padded)
