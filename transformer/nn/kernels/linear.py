"""Matrix products that are bit-identical on all x86-64 processors: oneDNN's, limited to AVX2 (`core/portable.py`).

MKL's are too, but take twice the time when limited to the common instruction set. In a process without the pins, and
for other devices, dtypes and architectures, all functions here are PyTorch's own.
"""

import os
import platform
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.dropout import first_order

_onednn: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
PORTABLE = os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2" and platform.machine() == "x86_64" and _onednn is not None
"""True if this process computes portably."""

_FEWEST = 8
_STEPS = 4  # halvings of a power of two


def even(rows: int) -> int:
    """Round up the number of rows, by a sixteenth at most.

    oneDNN prepares a product for each new number of rows, which takes as long as a small product: batches with similar
    numbers of tokens should have equal numbers of rows. It also avoids single rows, whose bits may differ from those of
    the same row in a batch.
    """
    step = max(_FEWEST, 1 << max(0, rows.bit_length() - 1 - _STEPS))
    return -(-rows // step) * step


def linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute `torch.nn.functional.linear`; states: (..., I), weight: (O, I), bias: (O,) or None. Returns (..., O)."""
    if not _suits(states, weight):
        return F.linear(states, weight, bias)
    if states.dim() == 2:
        rows: Tensor = _Linear.apply(states, weight, bias)  # type: ignore[no-untyped-call]
        return rows
    rows = _Linear.apply(states.reshape(-1, states.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return rows.view(*states.shape[:-1], -1)


class Linear(nn.Linear):
    """A linear layer that computes with `linear`."""

    def forward(self, states: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        return linear(states, self.weight, self.bias)


def rows_by_matrix(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute rows matrix^T, plus a bias, without a gradient: (N, I), (O, I) -> (N, O).

    A transposed matrix is used as it lies.
    """
    return _product(rows, matrix, bias) if _suits(rows, matrix) else F.linear(rows, matrix, bias)


def columns_by_columns(left: Tensor, right: Tensor) -> Tensor:
    """Compute left^T right, without a gradient: (N, O), (N, I) -> (O, I)."""
    return _columns(left, right) if _suits(left, right) else left.t() @ right


def evened(rows: Tensor) -> Tensor:
    """Pad rows with zeros: (N, C) -> (`even(N)`, C)."""
    missing = even(len(rows)) - len(rows)
    return F.pad(rows, (0, 0, 0, missing)) if missing else rows


def _suits(one: Tensor, other: Tensor) -> bool:
    return (
        PORTABLE
        and one.device.type == "cpu"
        and one.dtype == other.dtype == torch.float32
        and one.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_exporting()
    )


def _product(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    filled = evened(rows)
    product: Tensor = _onednn(filled, matrix, bias, "none", [], "")
    return product if filled is rows else product[: len(rows)]


def _columns(left: Tensor, right: Tensor) -> Tensor:
    left, right = evened(left).t(), evened(right).t()
    # oneDNN copies a transposed first factor: make that the narrow one.
    product: Tensor = (
        _onednn(left, right, None, "none", [], "")
        if len(left) <= len(right)
        else (_onednn(right, left, None, "none", [], "").t())
    )
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        gradient = evened(gradient)
        return (
            _product(gradient, weight.t(), None)[: len(rows)] if wants_rows else None,
            _columns(gradient, rows) if wants_weight else None,
            gradient.sum(dim=0) if wants_bias else None,
        )
