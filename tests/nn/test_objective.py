"""R-Drop, compared with its definition."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.cross_entropy import smoothed_cross_entropy
from transformer.nn.objective import next_token_objective, objective, symmetric_divergence

LOGITS = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
CLASSES = torch.tensor([0, 4, 2, 2, 1, 3, 0])


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

    loss = objective(predict, smoothing=0.0, r_drop=3.0)
    entropies = [F.cross_entropy(logits.float(), CLASSES, reduction="sum") for logits in passes]
    divergence = symmetric_divergence(passes[0].float(), passes[1].float())
    torch.testing.assert_close(loss.total, sum(entropies) / 2 + 1.5 * divergence)
    torch.testing.assert_close(loss.nll, sum(entropies) / 2)
    assert not left


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 1300])
def test_r_drop_without_logits_has_the_loss_and_the_gradients(rows: int, smoothing: float) -> None:
    torch.manual_seed(2)
    output = nn.Linear(6, 11).double()
    passes = [torch.randn(rows, 6, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    classes = torch.randint(11, (rows,))
    inputs = [*passes, output.weight, output.bias]

    left = list(passes)

    found = next_token_objective(lambda: (left.pop(0), classes), output, smoothing=smoothing, r_drop=3.0)
    logits = [output(states) for states in passes]
    entropies = [smoothed_cross_entropy(each, classes, smoothing) for each in logits]
    total = sum(each for each, _ in entropies) / 2 + 1.5 * symmetric_divergence(*logits)
    torch.testing.assert_close(found.total, total, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.nll, sum(nll for _, nll in entropies) / 2, rtol=1e-12, atol=0)
    assert not found.nll.requires_grad
    gradients = (torch.autograd.grad(each / 7, inputs) for each in (found.total, total))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_without_r_drop_the_loss_of_states_is_that_of_their_logits() -> None:
    output = nn.Linear(6, 5)
    states = torch.randn(7, 6)
    found = next_token_objective(lambda: (states, CLASSES), output, smoothing=0.1, r_drop=0.0)
    expected = objective(lambda: (output(states), CLASSES), smoothing=0.1, r_drop=0.0)
    torch.testing.assert_close(found.total, expected.total)
    torch.testing.assert_close(found.nll, expected.nll)
    assert found.predicted == expected.predicted == len(CLASSES)
