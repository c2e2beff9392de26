"""Reversible residual layers, which recompute activations instead of storing them (Gomez et al. 2017).

With them, the memory of a training step does not depend on the number of layers (Kitaev et al. 2020, section 3).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class ReversibleLayer(nn.Module):
    """y1 = x1 + attention(x2), y2 = x2 + feed_forward(y1); both map (B, T, C) to (B, T, C)."""

    def __init__(self, attention: nn.Module, feed_forward: nn.Module, chunk: int | None) -> None:
        """chunk: positions that `feed_forward` computes at a time; None for all."""
        super().__init__()
        self.attention, self.feed_forward, self.chunk = attention, feed_forward, chunk


Extra = Sequence[Any]
"""What a layer's attention is given besides the states; the same when it is recomputed."""


def reversible(layers: Sequence[ReversibleLayer], states: Tensor, extra: Callable[[int, Tensor], Extra]) -> Tensor:
    """Run the layers on two copies of `states`, (B, T, C). Returns the mean of their two outputs, (B, T, C).

    extra: number of a layer and the states that its attention reads -> its other arguments.
    """
    training = torch.is_grad_enabled() and layers[0].training
    seeds = torch.randint(2**62, (len(layers), 2)).tolist() if training else [(None, None)] * len(layers)
    parameters = [list(layer.parameters()) for layer in layers]
    flat = [parameter for own in parameters for parameter in own]
    one, two = _Reversible.apply(states, layers, extra, seeds, *flat)  # type: ignore[no-untyped-call]
    return (one + two) / 2  # type: ignore[no-any-return]


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Make the block draw the same dropout masks each time; None where it draws none."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


class _Reversible(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        layers: Sequence[ReversibleLayer],
        extra: Callable[[int, Tensor], Extra],
        seeds: Sequence[Sequence[int | None]],
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        one, two, given = states, states, []
        for number, layer in enumerate(layers):
            given.append(extra(number, two))
            with _seeded(seeds[number][0]):
                one = one + layer.attention(two, *given[-1])
            with _seeded(seeds[number][1]):
                two = two + torch.cat([layer.feed_forward(each) for each in _chunks(layer, one)], dim=1)
        ctx.layers, ctx.given, ctx.seeds = layers, given, seeds
        kind = states.device.type
        ctx.autocast = kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        ctx.save_for_backward(one, two)
        return one, two

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        (one, two), (grad_one, grad_two) = ctx.saved_tensors, gradients
        of_parameters: list[Tensor | None] = []
        with torch.amp.autocast(*ctx.autocast):
            for layer, given, seeds in reversed([*zip(ctx.layers, ctx.given, ctx.seeds, strict=True)]):
                chunks = _chunks(layer, one), _chunks(layer, grad_two)
                output, read, own_feed_forward = _gradients(layer.feed_forward, *chunks, (), seeds[1])
                two, grad_one = two - output, grad_one + read
                output, read, own_attention = _gradients(layer.attention, [two], [grad_one], given, seeds[0])
                one, grad_two = one - output, grad_two + read
                of_parameters[:0] = [*own_attention, *own_feed_forward]
        return grad_one + grad_two, None, None, None, *of_parameters


def _chunks(layer: ReversibleLayer, states: Tensor) -> Sequence[Tensor]:
    return torch.split(states, layer.chunk or states.shape[1], dim=1)


def _gradients(
    part: nn.Module, states: Sequence[Tensor], gradients: Sequence[Tensor], given: Extra, seed: int | None
) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
    """Recompute a part of a layer, in chunks. Returns its output, and the gradients of its input and parameters."""
    parameters, outputs, of_input = [*part.parameters()], [], []
    of_parameters: list[Tensor | None] = [None] * len(parameters)
    with _seeded(seed):
        for chunk, gradient in zip(states, gradients, strict=True):
            read = chunk.detach().requires_grad_()
            with torch.enable_grad():
                output = part(read, *given)
            found, *own = torch.autograd.grad(output, [read, *parameters], gradient, allow_unused=True)
            of_parameters = [
                before if new is None else new if before is None else before + new
                for before, new in zip(of_parameters, own, strict=True)
            ]
            outputs.append(output.detach())
            of_input.append(found)
    return torch.cat(outputs, dim=1), torch.cat(of_input, dim=1), of_parameters
