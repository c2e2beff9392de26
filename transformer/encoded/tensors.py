"""Batches as tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.encoded.batching import Ids, padded


def pad(sequences: Sequence[Ids], pad_id: int) -> Tensor:
    """Pad sequences of ids at the end, into one tensor (B, longest)."""
    return torch.from_numpy(padded(sequences, pad_id))


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device; on CUDA from pinned memory, so that the copy is asynchronous."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=device.type == "cuda")
