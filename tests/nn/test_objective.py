"""R-Drop, compared with its definition."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


def test_r_drop_has_the_logits_of_the_states() -> None:
    output = nn.Linear(6, 5)
    states = torch.randn(7, 6)
    found = next_token_objective(lambda: (states, CLASSES), output, smoothing=0.0, r_drop=3.0)
    expected = objective(lambda: (output(states), CLASSES), smoothing=0.0, r_drop=3.0)
    torch.testing.assert_close(found.total, expected.total)


def test_without_r_drop_the_loss_of_states_is_that_of_their_logits() -> None:
    output = nn.Linear(6, 5)
    states = torch.randn(7, 6)
    found = next_token_objective(lambda: (states, CLASSES), output, smoothing=0.1, r_drop=0.0)
    expected = objective(lambda: (output(states), CLASSES), smoothing=0.1, r_drop=0.0)
    torch.testing.assert_close(found.total, expected.total)
    torch.testing.assert_close(found.nll, expected.nll)
    assert found.predicted == expected.predicted == len(CLASSES)
