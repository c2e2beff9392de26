"""Matrix products with the same bits on every x86-64 processor: oneDNN's, held to AVX2 (`core/portable.py`).

MKL's are too, but held to what all processors share they take twice the time. In a process without the pins, and for
other devices, dtypes and architectures, all functions here are PyTorch's own.
"""

import os
import platform
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.first_order import first_order

PORTABLE = (
    os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2"
    and platform.machine() == "x86_64"
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)
"""Whether this process computes in a portable way."""

_FEWEST = 8
_STEPS = 4  # halvings of a power of two


def even(rows: int) -> int:
    """The number of rows, rounded up by a sixteenth at most.

    oneDNN prepares a product anew for every number of rows, which takes as long as a small product: batches of almost
    as many tokens should have as many rows. And a row alone, of which there is none then, may have other bits than the
    same row among others.
    """
    step = max(_FEWEST, 1 << max(0, rows.bit_length() - 1 - _STEPS))
    return -(-rows // step) * step


def linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`torch.nn.functional.linear`; states: (..., I), weight: (O, I), bias: (O,) or None. Returns (..., O)."""
    if not _suits(states, weight):
        return F.linear(states, weight, bias)
    rows: Tensor = _Linear.apply(states.reshape(-1, states.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return rows.view(*states.shape[:-1], -1)


class Linear(nn.Linear):
    """A linear layer that computes with `linear`."""

    def forward(self, states: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        return linear(states, self.weight, self.bias)


def rows_by_matrix(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows matrix^T + bias, without a gradient: (N, I), (O, I) -> (N, O). A transposed matrix is used as it lies."""
    if not _suits(rows, matrix):
        return F.linear(rows, matrix, bias)
    return _product(_evened(rows), matrix, bias)[: len(rows)]


def columns_by_columns(left: Tensor, right: Tensor) -> Tensor:
    """left^T right, without a gradient: (N, O), (N, I) -> (O, I)."""
    if not _suits(left, right):
        return left.t() @ right
    left, right = _evened(left), _evened(right)
    if left.shape[1] > right.shape[1]:  # it copies the transposed first factor: let that be the narrow one
        return _product(right.t(), left.t(), None).t()
    return _product(left.t(), right.t(), None)


def _suits(one: Tensor, other: Tensor) -> bool:
    return (
        PORTABLE
        and one.device.type == "cpu"
        and one.dtype == other.dtype == torch.float32
        and one.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )


def _evened(rows: Tensor) -> Tensor:
    missing = even(len(rows)) - len(rows)
    return F.pad(rows, (0, 0, 0, missing)) if missing else rows


def _product(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return rows_by_matrix(rows, weight, bias)

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            rows_by_matrix(gradient, weight.t()) if wants_rows else None,
            columns_by_columns(gradient, rows) if wants_weight else None,
            gradient.sum(dim=0) if wants_bias else None,
        )
