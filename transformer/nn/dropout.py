"""Dropout (Srivastava et al. 2014) whose masks are cheap on CPUs, and that of whole tokens."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.first_order import first_order

_LANES = 4  # 16-bit lanes of one 64-bit draw
_STEPS = 2**15  # a lane's sign is needed for its comparison
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Mask(NamedTuple):
    """Which values stay, as bits: a product with zeros and ones would be slower, with scales it would round in bf16."""

    bits: Tensor
    """Integers as wide as the values: all bits set where a value stays."""
    scale: float
    """What keeps the mean."""

    def __call__(self, states: Tensor) -> Tensor:
        """Zero what does not stay and scale the rest; same shape and dtype."""
        kept = (states.view(self.bits.dtype) & self.bits).view(states.dtype)
        return kept.mul_(self.scale)


def draw_mask(states: Tensor, probability: float) -> Mask:
    """A mask for `states`, on the CPU.

    PyTorch draws one double a value there, a fifth of a training step; here one 64-bit draw serves four values. So the
    probability is a multiple of 1/32,768, and the scale fits the one that is drawn.
    """
    dropped = min(round(probability * _STEPS), _STEPS - 1)
    draws = torch.empty(-(-states.numel() // _LANES), dtype=torch.int64).random_(-(2**63), None)
    lanes = draws.view(torch.int16)[: states.numel()].view(states.shape)
    # dropped - 1 - lane is negative, its sign bit set, where a lane of 15 bits is one of those that stay.
    bits = torch.rsub(lanes.bitwise_and_(_STEPS - 1), dropped - 1).bitwise_right_shift_(15)
    return Mask(bits.to(_BITS[states.element_size()]), _STEPS / (_STEPS - dropped))


def dropout(states: Tensor, probability: float) -> Tensor:
    """Zero each value with `probability`, scale the others so that the mean stays; same shape and dtype."""
    if probability == 0.0:
        return states
    if states.device.type != "cpu":
        return F.dropout(states, probability)
    kept: Tensor = _Drop.apply(states, draw_mask(states, probability))  # type: ignore[no-untyped-call]
    return kept


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: Mask) -> Tensor:
        ctx.mask = mask
        return mask(states)

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.mask(gradient), None


def drop_tokens(token_ids: Tensor, pad_id: int, probability: float) -> Tensor:
    """Leave out each token with `probability` but the first of a row: word dropout (Iyyer et al. 2015, section 3).

    token_ids: (B, T), padded at the end. Returns (B, T): the others move up, padding follows.
    """
    if probability == 0.0:
        return token_ids
    real = token_ids != pad_id
    stays = real & (torch.rand(token_ids.shape, device=token_ids.device) >= probability)
    stays[:, 0] = real[:, 0]  # what `first` pools; and no text becomes empty
    order = torch.argsort(stays.byte(), dim=1, descending=True, stable=True)
    return token_ids.gather(1, order).masked_fill(~stays.gather(1, order), pad_id)


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
