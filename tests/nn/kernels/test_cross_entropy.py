"""The loss, compared with PyTorch's, and the loss without logits, compared with the loss of logits."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.nn.kernels.cross_entropy import linear_cross_entropy, smoothed_cross_entropy

LOGITS = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
CLASSES = torch.tensor([0, 4, 2, 2, 1, 3, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothing_is_pytorchs(smoothing: float) -> None:
    total, nll = smoothed_cross_entropy(LOGITS, CLASSES, smoothing)
    expected = F.cross_entropy(LOGITS, CLASSES, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, F.cross_entropy(LOGITS, CLASSES, reduction="sum"), rtol=1e-12, atol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 1300])
def test_without_logits_loss_and_gradients_are_the_same(rows: int, smoothing: float) -> None:
    torch.manual_seed(2)
    output = nn.Linear(6, 11).double()
    states = torch.randn(rows, 6, dtype=torch.float64, requires_grad=True)
    classes = torch.randint(11, (rows,))
    inputs = [states, output.weight, output.bias]
    expected, expected_nll = smoothed_cross_entropy(output(states), classes, smoothing)
    total, nll = linear_cross_entropy(states, classes, output, smoothing)
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, expected_nll, rtol=1e-12, atol=0)
    assert not nll.requires_grad
    for one, other in zip(
        torch.autograd.grad(total / 7, inputs), torch.autograd.grad(expected / 7, inputs), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
