"""Second derivatives: right, or refused, but never wrong in silence."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transformer.nn.attention import KeyValue, scaled_dot_product_attention
from transformer.nn.dropout import dropout
from transformer.nn.ragged import gather, scatter
from transformer.training.objective import linear_cross_entropy

STATES = torch.randn(1, 2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
INDEX = torch.tensor([4, 0, 2])


def attend(states: Tensor) -> Tensor:
    return scaled_dot_product_attention(states, KeyValue(states, states), None, causal=True)


def cross_entropy(states: Tensor) -> Tensor:
    output = nn.Linear(4, 5).double()
    return linear_cross_entropy(states.flatten(0, 2), torch.arange(6) % 5, output, 0.1).total


@pytest.mark.parametrize("function", [attend, cross_entropy, lambda states: dropout(states, 0.5)])
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
