"""Training objectives: label-smoothed cross-entropy (Szegedy et al. 2016; Vaswani et al. 2017, section 5.4), optionally
with R-Drop (Liang et al. 2021) or SimCut (Gao et al. 2022).

Translation predicts one of many tokens, so it uses `linear_cross_entropy` and `linear_consistency`, which never hold
all logits; the plain formulas are `smoothed_cross_entropy` and `objective`. All but the last are in
`kernels/cross_entropy.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.cross_entropy import (
    Consistency,
    linear_consistency,
    linear_cross_entropy,
    smoothed_cross_entropy,
)


class Objective(NamedTuple):
    """Sums over all predictions."""

    total: Tensor
    """Scalar: the loss to minimise."""
    nll: Tensor
    """Scalar: the plain negative log-likelihood in nats, detached."""
    predicted: int
    """Number of predictions, N."""


def objective(
    predict: Callable[[], tuple[Tensor, Tensor]], *, smoothing: float, r_drop: float, weights: Tensor | None = None
) -> Objective:
    """Compute the loss of the logits (N, V) and target classes (N,) returned by `predict`.

    With `r_drop` > 0 it predicts twice with different dropout masks, and adds the mean of both divergences: half of
    eq. 4 of Liang et al. 2021, so that the scale of the learning rate stays the same. weights: (V,), as in
    `smoothed_cross_entropy`; the divergence has none.
    """
    logits, classes = predict()
    total, nll = smoothed_cross_entropy(logits.float(), classes, smoothing, weights)
    if r_drop:
        again, _ = predict()
        total_again, nll_again = smoothed_cross_entropy(again.float(), classes, smoothing, weights)
        divergence = symmetric_divergence(logits.float(), again.float())
        total, nll = (total + total_again) / 2 + r_drop / 2 * divergence, (nll + nll_again) / 2
    return Objective(total, nll, len(classes))


class SecondPass(NamedTuple):
    """A second pass over the same rows whose predictions should match the first's."""

    predict: Callable[[], tuple[Tensor, Tensor]]
    """Returns predictions like the first pass's `predict`."""
    weights: Consistency


def next_token_objective(
    predict: Callable[[], tuple[Tensor, Tensor]],
    output: nn.Linear,
    *,
    smoothing: float,
    second: SecondPass | None = None,
) -> Objective:
    """Compute `objective` for many classes: `predict` returns states (N, C), which `output` maps to logits (N, V)."""
    states, classes = predict()
    if second is None:
        return Objective(*linear_cross_entropy(states, classes, output, smoothing), len(classes))
    again, _ = second.predict()
    return Objective(*linear_consistency(states, again, classes, output, smoothing, second.weights), len(classes))


def symmetric_divergence(first: Tensor, second: Tensor) -> Tensor:
    """Compute (KL(P1 || P2) + KL(P2 || P1)) / 2, summed over rows; both are logits (N, V)."""
    one, two = F.log_softmax(first, dim=-1), F.log_softmax(second, dim=-1)
    return ((one.exp() - two.exp()) * (one - two)).sum() / 2
