"""Dropout whose masks are cheap on CPUs."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.nn.kernels.first_order import first_order

_LANES = 4  # 16-bit lanes of one 64-bit draw
_STEPS = 2**15  # a lane's sign is needed for its comparison
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def dropout(states: Tensor, probability: float) -> Tensor:
    """Zero each value with `probability`, scale the others so that the mean stays; same shape and dtype.

    `torch.nn.functional.dropout`, which other devices take, with other random numbers.
    """
    if probability == 0.0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, probability)
    kept: Tensor = _Drop.apply(states, draw_mask(states, probability))  # type: ignore[no-untyped-call]
    return kept


class DropMask(NamedTuple):
    """Which values stay, as bits: a product with zeros and ones would be slower, with scales it would round in bf16."""

    bits: Tensor
    """Integers as wide as the values: all bits set where a value stays."""
    scale: float
    """What keeps the mean."""

    def __call__(self, states: Tensor) -> Tensor:
        """`torch.where(stays, states * scale, 0)`; same shape and dtype."""
        kept = (states.view(self.bits.dtype) & self.bits).view(states.dtype)
        return kept.mul_(self.scale)


def draw_mask(states: Tensor, probability: float) -> DropMask:
    """A mask for `states`, on the CPU.

    PyTorch draws one double a value there, a fifth of a training step; here one 64-bit draw serves four values. So the
    probability is a multiple of 1/32,768, and the scale fits the one that is drawn.
    """
    dropped = min(round(probability * _STEPS), _STEPS - 1)
    draws = torch.empty(-(-states.numel() // _LANES), dtype=torch.int64).random_(-(2**63), None)
    lanes = draws.view(torch.int16)[: states.numel()].view(states.shape)
    # dropped - 1 - lane is negative, its sign bit set, where a lane of 15 bits is one of those that stay.
    bits = torch.rsub(lanes.bitwise_and_(_STEPS - 1), dropped - 1).bitwise_right_shift_(15)
    return DropMask(bits.to(_BITS[states.element_size()]), _STEPS / (_STEPS - dropped))


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: DropMask) -> Tensor:
        ctx.mask = mask
        return mask(states)

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.mask(gradient), None
