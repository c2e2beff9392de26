"""Batches of similar length, with little padding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def sorted_batches(lengths: NDArray[np.int64], batch_size: int) -> list[Ids]:
    """Batch all row numbers, longest rows first; rows of equal length keep their order."""
    order = np.argsort(-lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def padded(sequences: Sequence[Ids], pad_id: int) -> Ids:
    """Pad sequences of ids at the end, into one array (B, longest)."""
    rows = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
