"""What a family gives to training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from transformer.checkpoint.device import Compute
from transformer.core.schema import Section
from transformer.encoded.batching import Ids
from transformer.nn.model import Model
from transformer.training.config import TrainParams


class BatchLoss(NamedTuple):
    """The loss of a batch, or of a part of an update."""

    total: Tensor
    """Scalar: what is minimised, summed over the predictions."""
    nll: Tensor
    """Scalar: the plain negative log-likelihood of the same predictions in nats, detached."""
    predicted: int
    """Number of predictions (tokens, or texts)."""
    tokens: int
    """Real tokens read, for the throughput."""


class Learner(Protocol):
    """What an update needs."""

    @property
    def model(self) -> nn.Module:
        """The model to train."""

    @property
    def lr_scales(self) -> Mapping[str, float]:
        """Factors of the learning rate, by the name of the parameter; 1 for those without one."""

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """A batch as micro-batches, computed one after the other and whose gradients add up; usually just one."""

    def loss(self, rows: Ids) -> BatchLoss:
        """The loss on these rows of the training split."""


class Trainable(Learner, Protocol):
    """What the loop needs."""

    @property
    def model(self) -> Model:
        """The model to train, which knows its width."""

    def batches(self, epoch: int) -> Sequence[Ids]:
        """The epoch's batches of row numbers, in order; `loss` then reads this epoch's rows."""

    def cost(self, epoch: int) -> int:
        """How long an update of this epoch takes, relative to the other epochs': for the remaining time."""

    def validate(self) -> dict[str, float]:
        """Metrics on the validation split: `validation_loss`, `validation_accuracy` and other `validation_...`."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A training run before its first update; the same in each of its processes."""

    trainable: Trainable
    config: Section
    """The model's, written beside its weights."""
    params: TrainParams
    compute: Compute
    truncated: int
    """The number of training texts cut, for the metrics."""
    read: Sequence[Path] = ()
    """Folders that determine the result besides the encoded store and the vocabularies."""
    save_beside: Callable[[Path], None] | None = None
    """Writes what the kept weights need besides into their folder."""
