"""Cross-entropy over a large vocabulary without materializing a batch's logits."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.first_order import first_order

# Rows whose logits are in memory at a time on CPUs. Several copies of a whole batch's would dominate training memory.
_ROWS = 512


def smoothed_cross_entropy(
    logits: Tensor, classes: Tensor, smoothing: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Cross-entropy with `smoothing` of the probability spread over all classes (Szegedy et al. 2016, section 7).

    logits: (N, V); classes: (N,); weights: (V,) of each row's loss by its class, or None. Returns two sums over the
    rows: this loss, and the plain negative log-likelihood in nats, detached and without weights.
    """
    if weights is not None:
        loss = F.cross_entropy(logits, classes, reduction="none", label_smoothing=smoothing)
        nll = F.cross_entropy(logits.detach(), classes, reduction="sum")
        return (weights[classes] * loss).sum(), nll
    if not smoothing:
        total = F.cross_entropy(logits, classes, reduction="sum")
        return total, total.detach()
    log_probabilities = F.log_softmax(logits, dim=-1)
    nll = -log_probabilities.gather(-1, classes[:, None]).sum()
    uniform = -log_probabilities.mean(dim=-1).sum()
    return (1 - smoothing) * nll + smoothing * uniform, nll.detach()


def linear_cross_entropy(states: Tensor, classes: Tensor, output: nn.Linear, smoothing: float) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy(output(states), ...)`, with the logits of only a few rows in memory at a time.

    states: (N, C); classes: (N,). The gradient is computed together with the loss, while the logits exist.
    """
    total, nll = _LinearCrossEntropy.apply(states, output.weight, output.bias, classes, smoothing)  # type: ignore[no-untyped-call]
    return total, nll


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, classes: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        grad_states, grad_weight = torch.zeros_like(states), torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
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
            grad_states[start : start + rows] = gradient @ weight
            grad_weight += gradient.t() @ part
            if grad_bias is not None:
                grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight, grad_bias = ctx.saved_tensors
        grad_bias = None if grad_bias is None else grad_bias * gradient
        return grad_states * gradient, grad_weight * gradient, grad_bias, None, None
