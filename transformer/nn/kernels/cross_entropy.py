"""Cross-entropy over a large vocabulary, and the divergence of two passes, without materializing a batch's logits."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.dropout import first_order
from transformer.nn.kernels.linear import columns_by_columns, evened, rows_by_matrix

# Rows of logits in memory at a time on CPUs. Several copies of a whole batch's logits would dominate training memory.
_ROWS = 512


def smoothed_cross_entropy(
    logits: Tensor, classes: Tensor, smoothing: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute cross-entropy with `smoothing` of the probability spread over all classes (Szegedy et al. 2016, section
    7).

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
    """Compute `smoothed_cross_entropy(output(states), ...)` with only a few rows' logits in memory at a time.

    states: (N, C); classes: (N,). The gradient is computed together with the loss, while the logits exist.
    """
    total, nll = _LinearCrossEntropy.apply(states, output.weight, output.bias, classes, smoothing)  # type: ignore[no-untyped-call]
    return total, nll


class Consistency(NamedTuple):
    """Loss weights for two passes over the same rows whose predictions should agree."""

    first: float
    """Weight of the first pass's cross-entropy."""
    second: float
    """Weight of the second pass's cross-entropy."""
    first_second: float
    """Weight of KL(first || second)."""
    second_first: float
    """Weight of KL(second || first)."""


def r_drop(weight: float) -> Consistency:
    """Return half of eq. 4 of R-Drop (Liang et al. 2021), which keeps the scale of the learning rate."""
    return Consistency(0.5, 0.5, weight / 4, weight / 4)


def simcut(weight: float) -> Consistency:
    """Return SimCut's weights (Gao et al. 2022, section 3): the second pass, with cutoff, is only compared with the
    first.
    """
    return Consistency(1.0, 0.0, weight, 0.0)


def linear_consistency(
    first: Tensor, second: Tensor, classes: Tensor, output: nn.Linear, smoothing: float, weights: Consistency
) -> tuple[Tensor, Tensor]:
    """Compute both losses of `linear_cross_entropy` and both divergences, weighted, with few logits in memory.

    first, second: (N, C), of both passes; classes: (N,). Returns two sums over the rows: this loss, and the plain
    negative log-likelihoods in nats, weighted as the losses, detached.
    """
    total, nll = _LinearConsistency.apply(first, second, output.weight, output.bias, classes, smoothing, weights)  # type: ignore[no-untyped-call]
    return total, nll


class _Sum:
    """Running sum of a matrix's gradients, in its dtype and in the layout of the terms, which may be transposed."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix
        self._sum: Tensor | None = None

    def add(self, term: Tensor) -> None:
        term = term.to(self._matrix.dtype)
        self._sum = term if self._sum is None else self._sum.add_(term)

    def total(self) -> Tensor:
        return torch.zeros_like(self._matrix) if self._sum is None else self._sum


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, classes: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        count, states, classes = len(states), evened(states), evened(classes[:, None])
        grad_states, grad_weight = torch.zeros_like(states), _Sum(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total, nll = weight.new_zeros(()), weight.new_zeros(())
        rows = _ROWS if states.device.type == "cpu" else max(1, len(states))
        for start in range(0, len(states), rows):
            part, right, real = states[start : start + rows], classes[start : start + rows], slice(count - start)
            logits = rows_by_matrix(part, weight, bias)
            log_probabilities = logits.to(weight.dtype).log_softmax(dim=-1)
            likelihood = log_probabilities.gather(1, right)[real].sum()
            nll -= likelihood
            total -= (1 - smoothing) * likelihood
            if smoothing:
                total -= smoothing * log_probabilities.mean(dim=-1)[real].sum()
            gradient = log_probabilities.exp_().sub_(smoothing / len(weight))
            gradient.scatter_add_(1, right, gradient.new_full(right.shape, smoothing - 1))
            gradient[count - start :] = 0
            gradient = gradient.to(logits.dtype)
            grad_states[start : start + rows] = rows_by_matrix(gradient, weight.t())
            grad_weight.add(columns_by_columns(gradient, part))
            if grad_bias is not None:
                grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(grad_states[:count], grad_weight.total(), grad_bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight, grad_bias = ctx.saved_tensors
        grad_bias = None if grad_bias is None else grad_bias * gradient
        return grad_states * gradient, grad_weight * gradient, grad_bias, None, None


class _LinearConsistency(torch.autograd.Function):
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
        weights: Consistency,
    ) -> tuple[Tensor, Tensor]:
        shares, pq, qp = weights[:2], weights.first_second, weights.second_first
        count, first, second, classes = len(first), evened(first), evened(second), evened(classes[:, None])
        gradients = torch.zeros_like(first), torch.zeros_like(second)
        grad_matrix = _Sum(matrix)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total, nll = matrix.new_zeros(()), matrix.new_zeros(())
        rows = _ROWS if first.device.type == "cpu" else max(1, len(first))
        for start in range(0, len(first), rows):
            right, real = classes[start : start + rows], slice(count - start)
            parts = [states[start : start + rows] for states in (first, second)]
            logits = [rows_by_matrix(part, matrix, bias) for part in parts]
            one, two = (each.to(matrix.dtype).log_softmax(dim=-1) for each in logits)
            for share, each in zip(shares, (one, two), strict=True):
                if not share:
                    continue
                likelihood = share * each.gather(1, right)[real].sum()
                nll -= likelihood
                total -= (1 - smoothing) * likelihood
                if smoothing:
                    total -= smoothing * share * each.mean(dim=-1)[real].sum()
            lead = one - two
            p, q = one.exp_(), two.exp_()
            by_p, by_q = (p * lead).sum(dim=-1, keepdim=True), -(q * lead).sum(dim=-1, keepdim=True)
            total += pq * by_p[real].sum() + qp * by_q[real].sum()
            for_p = (lead - by_p).mul_(pq).add_(qp + shares[0]).mul_(p).sub_(q, alpha=qp)
            for_q = lead.neg_().sub_(by_q).mul_(qp).add_(pq + shares[1]).mul_(q).sub_(p, alpha=pq)
            for share, gradient, part, whole in zip(shares, (for_p, for_q), parts, gradients, strict=True):
                if share:
                    gradient.sub_(smoothing * share / len(matrix))
                    gradient.scatter_add_(1, right, gradient.new_full(right.shape, (smoothing - 1) * share))
                gradient[count - start :] = 0
                narrow = gradient.to(logits[0].dtype)
                whole[start : start + rows] = rows_by_matrix(narrow, matrix.t())
                grad_matrix.add(columns_by_columns(narrow, part))
                if grad_bias is not None:
                    grad_bias += narrow.sum(dim=0)
        ctx.save_for_backward(*(each[:count] for each in gradients), grad_matrix.total(), grad_bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if each is None else each * gradient for each in ctx.saved_tensors]
        return (*scaled, None, None, None)
