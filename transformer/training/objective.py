"""What training minimises: smoothed cross-entropy, with R-Drop if asked."""

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from transformer.training.config import TrainParams


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
