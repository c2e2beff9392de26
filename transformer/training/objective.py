"""What training minimises: smoothed cross-entropy, with R-Drop if asked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.first_order import first_order
from transformer.training.config import TrainParams

# Rows whose logits a CPU holds at a time. All of a batch's, a few times over, would be most of a training's memory.
_ROWS = 512


class Objective(NamedTuple):
    """Sums over all that is predicted."""

    total: Tensor
    """What is minimised: scalar."""
    nll: Tensor
    """The plain negative log-likelihood in nats, detached: scalar."""
    predicted: int
    """How many summands: N."""


def objective(predict: Callable[[], tuple[Tensor, Tensor]], params: TrainParams) -> Objective:
    """The loss of what `predict` gives: logits (N, V) and the right classes (N,).

    With `r_drop` it predicts twice, each time with other dropout, and adds the mean of both divergences: half of
    eq. 4 of Liang et al. 2021, so that the learning rate keeps its meaning.
    """
    logits, classes = predict()
    first = smoothed_cross_entropy(logits.float(), classes, params.label_smoothing)
    if not params.r_drop:
        return first
    again, _ = predict()
    second = smoothed_cross_entropy(again.float(), classes, params.label_smoothing)
    divergence = symmetric_divergence(logits.float(), again.float())
    total = (first.total + second.total) / 2 + params.r_drop / 2 * divergence
    return Objective(total, (first.nll + second.nll) / 2, first.predicted)


def next_token_objective(
    predict: Callable[[], tuple[Tensor, Tensor]], output: nn.Linear, params: TrainParams
) -> Objective:
    """As `objective`, for many classes: `predict` gives states (N, C), which `output` turns into logits (N, V)."""
    if not params.r_drop:
        return linear_cross_entropy(*predict(), output, params.label_smoothing)

    def logits() -> tuple[Tensor, Tensor]:
        states, classes = predict()
        return output(states), classes

    return objective(logits, params)


def linear_cross_entropy(states: Tensor, classes: Tensor, output: nn.Linear, smoothing: float) -> Objective:
    """`smoothed_cross_entropy` of `output(states)`, but no more than a few rows' logits are held at a time.

    states: (N, C); classes: (N,). The gradient is computed with the loss, where the logits are.
    """
    assert output.bias is not None
    total, nll = _LinearCrossEntropy.apply(states, output.weight, output.bias, classes, smoothing)  # type: ignore[no-untyped-call]
    return Objective(total, nll, len(classes))


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, classes: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        of_states, of_weight, of_bias = (torch.zeros_like(tensor) for tensor in (states, weight, bias))
        total, nll = weight.new_zeros(()), weight.new_zeros(())
        rows = _ROWS if states.device.type == "cpu" else max(1, len(states))
        for start in range(0, len(states), rows):
            part, right = states[start : start + rows], classes[start : start + rows, None]
            logits = F.linear(part, weight, bias)
            log_probabilities = logits.to(weight.dtype).log_softmax(dim=-1)
            likelihood = log_probabilities.gather(1, right).sum()
            nll -= likelihood
            total -= (1 - smoothing) * likelihood
            if smoothing:
                total -= smoothing * log_probabilities.mean(dim=-1).sum()
            gradient = log_probabilities.exp_().sub_(smoothing / len(weight))
            gradient.scatter_add_(1, right, gradient.new_full(right.shape, smoothing - 1))
            gradient = gradient.to(logits.dtype)
            of_states[start : start + rows] = gradient @ weight
            of_weight += gradient.t() @ part
            of_bias += gradient.sum(dim=0)
        ctx.save_for_backward(of_states, of_weight, of_bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        of_states, of_weight, of_bias = ctx.saved_tensors
        return of_states * gradient, of_weight * gradient, of_bias * gradient, None, None


def smoothed_cross_entropy(logits: Tensor, classes: Tensor, smoothing: float) -> Objective:
    """Cross-entropy with `smoothing` of the probability spread over all classes (Szegedy et al. 2016, section 7).

    logits: (N, V); classes: (N,).
    """
    if not smoothing:
        total = F.cross_entropy(logits, classes, reduction="sum")
        return Objective(total, total.detach(), len(classes))
    log_probabilities = F.log_softmax(logits, dim=-1)
    nll = -log_probabilities.gather(-1, classes[:, None]).sum()
    uniform = -log_probabilities.mean(dim=-1).sum()
    return Objective((1 - smoothing) * nll + smoothing * uniform, nll.detach(), len(classes))


def symmetric_divergence(first: Tensor, second: Tensor) -> Tensor:
    """(KL(P1 || P2) + KL(P2 || P1)) / 2, summed over rows, for logits (N, V) of both."""
    one, two = F.log_softmax(first, dim=-1), F.log_softmax(second, dim=-1)
    return ((one.exp() - two.exp()) * (one - two)).sum() / 2
