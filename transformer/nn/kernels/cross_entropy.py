"""Cross-entropy over a large vocabulary, and R-Drop, without materializing a batch's logits."""

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


def linear_r_drop(
    first: Tensor, second: Tensor, classes: Tensor, output: nn.Linear, smoothing: float, weight: float
) -> tuple[Tensor, Tensor]:
    """Half of eq. 4 of R-Drop (Liang et al. 2021) for two passes over the same rows, with few logits in memory.

    first, second: (N, C); classes: (N,); weight: of the divergence, alpha. Returns two sums over the rows: the mean of
    both losses of `linear_cross_entropy` plus weight / 2 times the mean of both divergences, and the mean of both plain
    negative log-likelihoods in nats, detached.
    """
    total, nll = _LinearRDrop.apply(first, second, output.weight, output.bias, classes, smoothing, weight)  # type: ignore[no-untyped-call]
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


class _LinearRDrop(torch.autograd.Function):
    """With p and q the probabilities of both passes, the gradient of KL(p || q) by p's logits is
    p (log p - log q - KL(p || q)), and by q's logits q - p.
    """

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        matrix: Tensor,
        bias: Tensor | None,
        classes: Tensor,
        smoothing: float,
        weight: float,
    ) -> tuple[Tensor, Tensor]:
        gradients = torch.zeros_like(first), torch.zeros_like(second)
        grad_matrix = torch.zeros_like(matrix)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total, nll = matrix.new_zeros(()), matrix.new_zeros(())
        rows = _ROWS if first.device.type == "cpu" else max(1, len(first))
        for start in range(0, len(first), rows):
            right = classes[start : start + rows, None]
            parts = [states[start : start + rows] for states in (first, second)]
            logits = [F.linear(part, matrix, bias) for part in parts]
            one, two = (each.to(matrix.dtype).log_softmax(dim=-1) for each in logits)
            likelihood = (one.gather(1, right).sum() + two.gather(1, right).sum()) / 2
            nll -= likelihood
            total -= (1 - smoothing) * likelihood
            if smoothing:
                total -= smoothing / 2 * (one.mean(dim=-1).sum() + two.mean(dim=-1).sum())
            lead = one - two
            p, q = one.exp_(), two.exp_()
            forth, back = (p * lead).sum(dim=-1, keepdim=True), -(q * lead).sum(dim=-1, keepdim=True)
            total += weight / 4 * (forth.sum() + back.sum())
            for_p = (lead - forth + 1).mul_(weight / 4).add_(0.5).mul_(p).sub_(q, alpha=weight / 4)
            for_q = lead.neg_().sub_(back).add_(1).mul_(weight / 4).add_(0.5).mul_(q).sub_(p, alpha=weight / 4)
            for gradient, part, whole in zip((for_p, for_q), parts, gradients, strict=True):
                gradient.sub_(smoothing / 2 / len(matrix))
                gradient.scatter_add_(1, right, gradient.new_full(right.shape, (smoothing - 1) / 2))
                narrow = gradient.to(logits[0].dtype)
                whole[start : start + rows] = narrow @ matrix
                grad_matrix += narrow.t() @ part
                if grad_bias is not None:
                    grad_bias += narrow.sum(dim=0)
        ctx.save_for_backward(*gradients, grad_matrix, grad_bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if each is None else each * gradient for each in ctx.saved_tensors]
        return (*scaled, None, None, None)
