"""Second derivatives: right or refused, never silently wrong."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transformer.nn.kernels.attention import attend
from transformer.nn.kernels.cross_entropy import linear_consistency, linear_cross_entropy, simcut
from transformer.nn.kernels.dropout import dropout
from transformer.nn.kernels.packing import gather, scatter

STATES = torch.randn(1, 2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
INDEX = torch.tensor([4, 0, 2])


def attend_to_itself(states: Tensor) -> Tensor:
    return attend(states, states, states, causal=True)


def cross_entropy(states: Tensor) -> Tensor:
    output = nn.Linear(4, 5).double()
    return linear_cross_entropy(states.flatten(0, 2), torch.arange(6) % 5, output, 0.1)[0]


def divergence(states: Tensor) -> Tensor:
    output, rows = nn.Linear(4, 5).double(), states.flatten(0, 2)
    return linear_consistency(rows, rows.flip(0), torch.arange(6) % 5, output, 0.1, simcut(5.0))[0]


@pytest.mark.parametrize("function", [attend_to_itself, cross_entropy, divergence, lambda states: dropout(states, 0.5)])
def test_a_gradient_that_cannot_be_differentiated_again_says_so(function: Callable[[Tensor], Tensor]) -> None:
    states = STATES.clone().requires_grad_()
    loss = function(states.square()).sum()
    (gradient,) = torch.autograd.grad(loss, states, retain_graph=True)
    assert gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="has no second derivative"):
        torch.autograd.grad(loss, states, create_graph=True)


@pytest.mark.parametrize(
    "function", [lambda rows: scatter(rows, INDEX, 6), lambda rows: gather(rows.repeat(2, 1), INDEX)]
)
def test_those_of_scatter_and_gather_are_right(function: Callable[[Tensor], Tensor]) -> None:
    rows = STATES[0, 0].clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda given: function(given).square(), (rows,))
