"""The interface between a model family and the training loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from transformer.core.validation import Section
from transformer.data.store import Ids
from transformer.nn.device import Compute
from transformer.nn.layers import Model
from transformer.training.schedule import TrainParams


class BatchLoss(NamedTuple):
    """The loss of a batch, or of a part of an update."""

    total: Tensor
    """Scalar: the loss to minimise, summed over the predictions."""
    nll: Tensor
    """Scalar: the plain negative log-likelihood of the same predictions in nats, detached."""
    predicted: int
    """Number of predictions (tokens, or texts)."""
    tokens: int
    """Real tokens read, for the throughput."""


class Learner(Protocol):
    """Interface for a training step: a model and its loss."""

    @property
    def model(self) -> nn.Module:
        """The model to train."""

    @property
    def lr_scales(self) -> Mapping[str, float]:
        """Learning-rate factors by parameter name; 1 for all others."""

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """Split a batch into micro-batches for gradient accumulation; usually just one."""

    def loss(self, rows: Ids) -> BatchLoss:
        """Compute the loss on these rows of the training split."""


class Trainable(Learner, Protocol):
    """Interface for the training loop: a learner with batches and validation."""

    @property
    def model(self) -> Model:
        """The model to train, which has a width."""

    def batches(self, epoch: int) -> Sequence[Ids]:
        """Return the epoch's batches of row numbers, in order; `loss` then reads this epoch's rows."""

    def cost(self, epoch: int) -> int:
        """Return the relative time per update of this epoch, for the remaining-time estimate."""

    def validate(self) -> dict[str, float]:
        """Compute the metrics on the validation split: `validation_loss`, `validation_accuracy` and other
        `validation_...`.
        """


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A training run before its first update; identical in all of its processes."""

    trainable: Trainable
    config: Section
    """The model's configuration, saved next to its weights."""
    params: TrainParams
    compute: Compute
    truncated: int
    """Number of truncated training texts, reported as a metric."""
    left_out: int = 0
    """Number of training texts left out for their length, reported as a metric if there are any."""
    read: Sequence[Path] = ()
    """Input folders that determine the result, besides the encoded store and the vocabularies."""
    save_beside: Callable[[Path], None] | None = None
    """Writes further files that the kept weights need into their folder."""
