"""The batches of an epoch, and what the families' training on an encoded corpus has in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.checkpoint.device import Compute
from transformer.encoded.batching import Ids
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.nn.model import Model
from transformer.training.config import TrainParams
from transformer.training.trainable import BatchLoss


class Corpus(Protocol):
    """A split of the encoded store."""

    lengths: NDArray[np.int64]
    """Tokens that are read of each row: (N,), or (N, sides)."""

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """The same rows in the pieces of this epoch."""


CorpusT = TypeVar("CorpusT", bound=Corpus)
ModelT = TypeVar("ModelT", bound=Model)


class CorpusTraining(ABC, Generic[CorpusT, ModelT]):
    """What `fit` trains, but for the loss of a batch and the validation, which belong to the family."""

    lr_scales: Mapping[str, float] = MappingProxyType({})
    """As `Learner.lr_scales`."""

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
        """A fresh model, its weights drawn from torch's generator, which `params.seed` has seeded."""

    @abstractmethod
    def loss(self, rows: Ids) -> BatchLoss:
        """The summed loss of these rows of `epoch_rows`."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """As `Trainable.validate`."""

    def rows(self, epoch: int) -> CorpusT:
        """What the epoch reads, as stored; `train` unless the family says otherwise."""
        del epoch
        return self.train

    def batches(self, epoch: int) -> Sequence[Ids]:
        """All rows in a random order."""
        self.epoch = epoch
        self._use_rows(self.rows(epoch).resegmented(self.dropout, epoch))
        return random_batches(self._lengths, self.params, epoch)

    def cost(self, epoch: int) -> int:
        """As `Trainable.cost`; all epochs alike unless the family says otherwise."""
        del epoch
        return 1

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """As `Learner.pieces`."""
        return pieces_of_like_length(rows, self._lengths, self.params) if self.pads else [rows]

    def tokens(self, rows: Ids) -> int:
        """Real tokens of these rows."""
        return int(self._sides[rows].sum())

    def _use_rows(self, rows: CorpusT) -> None:
        self.epoch_rows = rows
        """The rows of the current epoch, in its pieces."""
        self._sides = rows.lengths if rows.lengths.ndim == 2 else rows.lengths[:, None]
        self._lengths = self._sides.max(axis=1)


def random_batches(lengths: NDArray[np.int64], params: TrainParams, epoch: int) -> list[Ids]:
    """All row numbers, shuffled for this epoch and batched as `params` say.

    lengths: (N,), a row's longest side in tokens. The same seed and epoch give the same batches. Rows are not bucketed
    by length: such batches train worse (measured in docs/design.md), and padding is not computed anyway (nn/layout.py).
    """
    order = np.random.default_rng([params.seed, epoch]).permutation(len(lengths))
    if params.batch_unit == "rows":
        return [order[start : start + params.batch_size] for start in range(0, len(order), params.batch_size)]
    return _filled(order, lengths, params.batch_size)


def pieces_of_like_length(rows: Ids, lengths: NDArray[np.int64], params: TrainParams) -> list[Ids]:
    """Split a batch of `batch_size` tokens into pieces that do not exceed it with padding, where padding is computed.

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
    """Batches of at most `tokens` tokens; a longer row is a batch of its own."""
    ends = np.cumsum(lengths[order])
    batches, start, spent = [], 0, 0
    while start < len(order):
        end = max(int(np.searchsorted(ends, spent + tokens, side="right")), start + 1)
        batches.append(order[start:end])
        start, spent = end, int(ends[end - 1])
    return batches
