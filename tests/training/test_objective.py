"""The loss against PyTorch's, and R-Drop against its definition."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.builders import TRAIN
from transformer.training.config import TrainParams
from transformer.training.objective import (
    linear_cross_entropy,
    next_token_objective,
    objective,
    smoothed_cross_entropy,
    symmetric_divergence,
)

LOGITS = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
CLASSES = torch.tensor([0, 4, 2, 2, 1, 3, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothing_is_pytorchs(smoothing: float) -> None:
    loss = smoothed_cross_entropy(LOGITS, CLASSES, smoothing)
    expected = F.cross_entropy(LOGITS, CLASSES, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss.total, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(loss.nll, F.cross_entropy(LOGITS, CLASSES, reduction="sum"), rtol=1e-12, atol=0)


def test_the_divergence_is_the_mean_of_both_directions() -> None:
    other = LOGITS.flip(0)
    one, two = LOGITS.log_softmax(-1), other.log_softmax(-1)
    kl = F.kl_div(one, two, reduction="sum", log_target=True) + F.kl_div(two, one, reduction="sum", log_target=True)
    torch.testing.assert_close(symmetric_divergence(LOGITS, other), kl / 2, rtol=1e-12, atol=0)
    assert symmetric_divergence(LOGITS, LOGITS).item() == 0


def test_r_drop_predicts_twice_and_adds_the_divergence() -> None:
    passes = [LOGITS, LOGITS.flip(1)]
    left = list(passes)

    def predict() -> tuple[Tensor, Tensor]:
        return left.pop(0), CLASSES

    loss = objective(predict, TrainParams(**(TRAIN | {"r_drop": 3.0})))
    entropies = [F.cross_entropy(logits.float(), CLASSES, reduction="sum") for logits in passes]
    divergence = symmetric_divergence(passes[0].float(), passes[1].float())
    torch.testing.assert_close(loss.total, sum(entropies) / 2 + 1.5 * divergence)
    torch.testing.assert_close(loss.nll, sum(entropies) / 2)
    assert not left


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 1300])
def test_without_logits_loss_and_gradients_are_the_same(rows: int, smoothing: float) -> None:
    torch.manual_seed(2)
    output = nn.Linear(6, 11).double()
    states = torch.randn(rows, 6, dtype=torch.float64, requires_grad=True)
    classes = torch.randint(11, (rows,))
    inputs = [states, output.weight, output.bias]
    expected = smoothed_cross_entropy(output(states), classes, smoothing)
    found = linear_cross_entropy(states, classes, output, smoothing)
    torch.testing.assert_close(found.total, expected.total, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.nll, expected.nll, rtol=1e-12, atol=0)
    assert not found.nll.requires_grad
    assert found.predicted == rows
    for one, other in zip(
        torch.autograd.grad(found.total / 7, inputs), torch.autograd.grad(expected.total / 7, inputs), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_r_drop_has_the_logits_of_the_states() -> None:
    output = nn.Linear(6, 5)
    states = torch.randn(7, 6)
    params = TrainParams(**(TRAIN | {"r_drop": 3.0}))
    found = next_token_objective(lambda: (states, CLASSES), output, params)
    expected = objective(lambda: (output(states), CLASSES), params)
    torch.testing.assert_close(found.total, expected.total)
