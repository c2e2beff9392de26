"""Batches of an epoch, and the base class for training on an encoded corpus."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer.core.validation import Section
from transformer.data.bpe_dropout import BpeDropout
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

    memory: Any
    """What the next loss depends on besides the weights: replaced, never changed, by `loss`; None for nothing."""

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


class Corpus(Protocol):
    """A split of the encoded store."""

    lengths: NDArray[np.int64]
    """Tokens read per row: (N,), or (N, sides)."""

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """Return the same rows, segmented anew for this epoch."""


CorpusT = TypeVar("CorpusT", bound=Corpus)
ModelT = TypeVar("ModelT", bound=Model)


class CorpusTraining(ABC, Generic[CorpusT, ModelT]):
    """Base class of what `fit` trains; families add the batch loss and the validation."""

    lr_scales: Mapping[str, float] = MappingProxyType({})
    """Learning-rate factors by parameter name, see `Learner.lr_scales`."""
    memory: Any = None
    """See `Learner.memory`."""

    def __init__(
        self,
        train: CorpusT,
        validation: CorpusT,
        params: TrainParams,
        compute: Compute,
        dropout: BpeDropout | None,
    ) -> None:
        self.train, self.validation, self.params, self.compute = train, validation, params, compute
        self.dropout = dropout
        self.epoch = 1
        """The current epoch."""
        self._use_rows(train)
        torch.manual_seed(params.seed)
        self.model = self.build().to(compute.device)
        self.pads = self.model.pads(compute.device)

    @abstractmethod
    def build(self) -> ModelT:
        """Build a new model with weights drawn from torch's generator, which is seeded with `params.seed`."""

    @abstractmethod
    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed loss on these rows of `epoch_rows`."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Return the metrics on the validation split."""

    def rows(self, epoch: int) -> CorpusT:
        """Return the epoch's rows as stored: `train` unless overridden."""
        del epoch
        return self.train

    def batches(self, epoch: int) -> Sequence[Ids]:
        """Return all rows, batched in random order."""
        self.epoch = epoch
        self._use_rows(self.rows(epoch).resegmented(self.dropout, epoch))
        return random_batches(self._lengths, self.params, epoch)

    def cost(self, epoch: int) -> int:
        """Return the relative time per update of this epoch: constant unless overridden."""
        del epoch
        return 1

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """Split a batch into micro-batches."""
        return pieces_of_like_length(rows, self._lengths, self.params) if self.pads else [rows]

    def tokens(self, rows: Ids) -> int:
        """Count the real tokens in these rows."""
        return int(self._sides[rows].sum())

    def _use_rows(self, rows: CorpusT) -> None:
        self.epoch_rows = rows
        """The current epoch's rows, as segmented for this epoch."""
        self._sides = rows.lengths if rows.lengths.ndim == 2 else rows.lengths[:, None]
        self._lengths = self._sides.max(axis=1)


def random_batches(lengths: NDArray[np.int64], params: TrainParams, epoch: int) -> list[Ids]:
    """Shuffle all row numbers for this epoch and batch them according to `params`.

    lengths: (N,), a row's longest side in tokens. The same seed and epoch give the same batches. Rows are not bucketed
    by length: such batches train worse (measured in docs/design.md), and padding is not computed anyway (nn/layout.py).
    """
    order = np.random.default_rng([params.seed, epoch]).permutation(len(lengths))
    if params.batch_unit == "rows":
        return [order[start : start + params.batch_size] for start in range(0, len(order), params.batch_size)]
    return _filled(order, lengths, params.batch_size)


def pieces_of_like_length(rows: Ids, lengths: NDArray[np.int64], params: TrainParams) -> list[Ids]:
    """Split a batch of `batch_size` tokens into micro-batches within that size, padding included, if padding is
    computed.

    lengths: as in `random_batches`. Random rows padded to the longest would be several times that many tokens.
    """
    if params.batch_unit == "rows":
        return [rows]
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    pieces, start = [], 0
    while start < len(ordered):
        end = start + max(1, params.batch_size // max(1, int(lengths[ordered[start]])))
        pieces.append(ordered[start:end])
        start = end
    return pieces


def _filled(order: Ids, lengths: NDArray[np.int64], tokens: int) -> list[Ids]:
    """Fill batches with up to `tokens` tokens; a longer row is a batch of its own."""
    ends = np.cumsum(lengths[order])
    batches, start, spent = [], 0, 0
    while start < len(order):
        end = max(int(np.searchsorted(ends, spent + tokens, side="right")), start + 1)
        batches.append(order[start:end])
        start, spent = end, int(ends[end - 1])
    return batches
