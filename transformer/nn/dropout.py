"""Dropout (Srivastava et al. 2014) whose masks are cheap on CPUs."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LANES = 4  # 16-bit lanes of one 64-bit draw


def dropout(states: Tensor, probability: float) -> Tensor:
    """Zero each value with `probability`, scale the others so that the mean stays; same shape and dtype.

    PyTorch draws one double a value on CPUs, a fifth of a training step; here one 64-bit draw serves four values.
    So the probability is a multiple of 1/65,536 there, and the scale fits the one that is drawn.
    """
    if probability == 0.0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, probability)
    dropped = min(round(probability * 65536), 65535)
    draws = torch.empty(-(-states.numel() // _LANES), dtype=torch.int64).random_(-(2**63), None)
    lanes = draws.view(torch.int16)[: states.numel()].view(states.shape)
    kept: Tensor = _Drop.apply(states, lanes < dropped - 32768, 65536 / (65536 - dropped))  # type: ignore[no-untyped-call]
    return kept


class _Drop(torch.autograd.Function):
    """Zeros where the mask is True, the rest scaled; a mask of scales would round them in bf16, a bias."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return states.masked_fill(mask, 0.0).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return gradient.masked_fill(mask, 0.0).mul_(ctx.scale), None, None


class Dropout(nn.Module):
    """`dropout` while training, nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, states: Tensor) -> Tensor:
        """Any shape."""
        return dropout(states, self.probability) if self.training else states

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.probability}"
