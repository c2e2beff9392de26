"""Batches of similar length, with little padding."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ids = NDArray[np.int64]


def sorted_batches(lengths: NDArray[np.int64], batch_size: int) -> list[Ids]:
    """All row numbers in batches, longest rows first; rows of equal length keep their order."""
    order = np.argsort(-lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def pad(sequences: Sequence[Ids], pad_id: int) -> Tensor:
    """Pad sequences of ids at the end, into one tensor (B, longest)."""
    padded = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(padded)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device; on CUDA from pinned memory, so that the copy is asynchronous."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)
