"""Second derivatives: right or refused, never silently wrong."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transformer.nn.kernels.attention import attend
from transformer.nn.kernels.cross_entropy import linear_cross_entropy
from transformer.nn.kernels.dropout import dropout
from transformer.nn.kernels.packing import gather, scatter

STATES = torch.randn(1, 2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
OUTPUT = nn.Linear(4, 5).double()
INDEX = torch.tensor([4, 0, 2])


@pytest.mark.parametrize(
    "function",
    [
        lambda states: attend(states, states, states, causal=True),
        lambda states: linear_cross_entropy(states.flatten(0, 2), torch.arange(6) % 5, OUTPUT, 0.1)[0],
        lambda states: dropout(states, 0.5),
    ],
)
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
