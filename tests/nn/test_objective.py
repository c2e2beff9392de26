"""R-Drop and SimCut, compared with their definitions."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.cross_entropy import Consistency, r_drop, simcut, smoothed_cross_entropy
from transformer.nn.objective import SecondPass, next_token_objective, objective

LOGITS = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
CLASSES = torch.tensor([0, 4, 2, 2, 1, 3, 0])


def kl(one: Tensor, two: Tensor) -> Tensor:
    """KL(one || two) of logits, summed over rows."""
    return F.kl_div(two.log_softmax(-1), one.log_softmax(-1), reduction="sum", log_target=True)


def of_one_pass(logits: list[Tensor], classes: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    return smoothed_cross_entropy(logits[0], classes, smoothing)


def of_r_drop(logits: list[Tensor], classes: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Half of eq. 4 of Liang et al. 2021, and the plain likelihood."""
    (one, plain), (two, other) = (smoothed_cross_entropy(each, classes, smoothing) for each in logits)
    return (one + two) / 2 + 3 / 4 * (kl(*logits) + kl(*reversed(logits))), (plain + other) / 2


def of_simcut(logits: list[Tensor], classes: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Gao et al. 2022, section 3: only the first pass is judged; the gradient goes through both."""
    total, plain = smoothed_cross_entropy(logits[0], classes, smoothing)
    return total + 3 * kl(*logits), plain


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_of_logits_is_its_definition(smoothing: float) -> None:
    passes = [LOGITS.float(), LOGITS.float().flip(1)]
    left = list(passes)
    loss = objective(lambda: (left.pop(0), CLASSES), smoothing=smoothing, r_drop=3.0)
    total, plain = of_r_drop(passes, CLASSES, smoothing)
    torch.testing.assert_close(loss.total, total)
    torch.testing.assert_close(loss.nll, plain)
    assert not left


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 1300])
@pytest.mark.parametrize(
    ("weights", "definition"), [(None, of_one_pass), (r_drop(3.0), of_r_drop), (simcut(3.0), of_simcut)]
)
def test_passes_without_logits_have_the_loss_and_the_gradients(
    weights: Consistency | None, definition: Callable[..., tuple[Tensor, Tensor]], rows: int, smoothing: float
) -> None:
    torch.manual_seed(2)
    output = nn.Linear(6, 11).double()
    passes = [torch.randn(rows, 6, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    classes = torch.randint(11, (rows,))
    inputs = [*passes, output.weight, output.bias]
    second = None if weights is None else SecondPass(lambda: (passes[1], classes), weights)
    found = next_token_objective(lambda: (passes[0], classes), output, smoothing=smoothing, second=second)
    total, plain = definition([output(states) for states in passes], classes, smoothing)
    torch.testing.assert_close(found.total, total, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.nll, plain, rtol=1e-12, atol=0)
    assert not found.nll.requires_grad and found.predicted == rows
    gradients = (torch.autograd.grad(each / 7, inputs, materialize_grads=True) for each in (found.total, total))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
