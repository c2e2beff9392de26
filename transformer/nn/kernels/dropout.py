"""Dropout with masks that are cheap on CPUs."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


def first_order(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose own derivative would be wrong: with `create_graph=True` it raises RuntimeError.

    PyTorch's `once_differentiable` raises only if the incoming gradient itself requires a gradient, so not for a
    gradient penalty or a Hessian of the loss.
    """

    @wraps(backward)
    def guarded(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(f"{backward.__qualname__} has no second derivative: leave out create_graph=True")
        return backward(ctx, *gradients)

    return guarded


_LANES = 4  # 16-bit lanes of one 64-bit draw
_STEPS = 2**15  # 15 bits of a lane: the comparison needs the sign bit
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def dropout(states: Tensor, probability: float) -> Tensor:
    """Zero each value with `probability` and scale the others to preserve the mean; same shape and dtype.

    Replaces `torch.nn.functional.dropout`, with different random numbers; other devices use PyTorch's.
    """
    if probability == 0.0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, probability)
    kept: Tensor = _Drop.apply(states, draw_mask(states, probability))  # type: ignore[no-untyped-call]
    return kept


class DropMask(NamedTuple):
    """A dropout mask as bits: multiplying by zeros and ones would be slower, and by scales would round in bf16."""

    bits: Tensor
    """Integers as wide as the values: all bits set where a value is kept."""
    scale: float
    """The factor that preserves the mean."""

    def __call__(self, states: Tensor) -> Tensor:
        """Compute `torch.where(keep, states * scale, 0)`; same shape and dtype."""
        kept = (states.view(self.bits.dtype) & self.bits).view(states.dtype)
        return kept.mul_(self.scale)


def draw_mask(states: Tensor, probability: float) -> DropMask:
    """Draw a mask for `states`, on the CPU.

    PyTorch draws one double per value there, which takes a fifth of a training step; here one 64-bit draw serves four
    values. So the probability is rounded to a multiple of 1/32,768, and the scale matches the rounded one.
    """
    dropped = min(round(probability * _STEPS), _STEPS - 1)
    draws = torch.empty(-(-states.numel() // _LANES), dtype=torch.int64).random_(-(2**63), None)
    lanes = draws.view(torch.int16)[: states.numel()].view(states.shape)
    # For a 15-bit lane that is kept, dropped - 1 - lane is negative: its sign bit, shifted, fills the mask.
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
