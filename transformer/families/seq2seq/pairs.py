"""Encoded sentence pairs, and the loss on them."""

import math
from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.bpe_dropout import BpeDropout, Column
from transformer.data.store import EncodedColumn, Ids, padded, sorted_batches
from transformer.data.vocabulary import clip
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqModel
from transformer.nn.device import to_device
from transformer.nn.kernels.packing import gather


class Pairs(NamedTuple):
    """Sentence pairs as ids, truncated to the model's positions."""

    sources: list[Ids]
    targets: list[Ids]


class Predicted(NamedTuple):
    """Prediction metrics of a batch of target tokens."""

    nats: float
    """Summed cross-entropy."""
    right: int
    """Number of tokens that were the most probable ones."""
    tokens: int


class ScorePairs(Protocol):
    """A function that scores batches of pairs."""

    def __call__(self, batches: Iterable[Pairs], /) -> Iterator[Predicted]:
        """Yield the metrics of each batch, in order."""
        ...


class EncodedPairs:
    """One split of the encoded store. Sequences longer than the model's positions are truncated and counted."""

    def __init__(self, folder: Path, config: Seq2SeqConfig) -> None:
        self.source: Column = EncodedColumn(folder, "source")
        self.target: Column = EncodedColumn(folder, "target")
        self.config = config
        self.split = folder.name
        full = np.stack((self.source.lengths, self.target.lengths), axis=1)
        self.lengths = full.clip(max=config.model.max_length)
        """(N, 2): number of source and target tokens, including special ones."""
        self.fits: NDArray[np.bool_] = np.all(full <= config.model.max_length, axis=1)
        """(N,): True for pairs that are not truncated."""
        self.left_out = 0
        """Number of pairs of the split that are not in this view."""

    def __len__(self) -> int:
        return len(self.source)

    @property
    def truncated(self) -> int:
        """Number of truncated pairs."""
        return int((~self.fits).sum())

    def fitting(self) -> Self:
        """Return the pairs that are not truncated. Raises UserError if there is none."""
        view, rows = copy(self), np.flatnonzero(self.fits)
        if not len(rows):
            raise UserError(
                f"every pair of {self.split} is longer than model.max_length ({self.config.model.max_length}): raise"
                " it, or set train.too_long to cut"
            )
        view.source, view.target = _Selected(self.source, rows), _Selected(self.target, rows)
        view.lengths, view.fits, view.left_out = self.lengths[rows], self.fits[rows], len(self) - len(rows)
        return view

    @property
    def predicted(self) -> int:
        """Number of target tokens to predict: all but the begin tokens."""
        return int((self.lengths[:, 1] - 1).sum())

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """Return the pairs in this epoch's BPE-dropout segmentation, or as stored if dropout is None."""
        if dropout is None:
            return self
        view = copy(self)
        longest = self.config.model.max_length
        view.source = dropout.column("source", self.source, epoch, longest=longest)
        view.target = dropout.column("target", self.target, epoch, longest=longest)
        return view

    def both_directions(self) -> Self:
        """Return all pairs, followed by all pairs with source and target swapped."""
        view = copy(self)
        view.source, view.target = _Concatenated(self.source, self.target), _Concatenated(self.target, self.source)
        view.lengths = np.concatenate((self.lengths, self.lengths[:, ::-1]))
        return view

    def pairs(self, rows: Ids) -> Pairs:
        """Return the pairs in the given rows."""
        limit = self.config.model.max_length
        return Pairs([clip(self.source[row], limit) for row in rows], [clip(self.target[row], limit) for row in rows])

    def batch(self, rows: Ids, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the padded source ids (B, S) and target ids (B, T + 1) of the given rows."""
        return _batch(self.config, self.pairs(rows), device)

    def places(self, rows: Ids, device: torch.device) -> Tensor:
        """Return indices (N,) into the batch's flattened inputs (B * T,) of target tokens followed by another token."""
        return _places(self.config, self.pairs(rows), device)

    def score(self, batch_size: int, scored: ScorePairs) -> tuple[float, float]:
        """Return mean cross-entropy per target token in nats, and accuracy; both include the end token."""
        batches = (self.pairs(rows) for rows in sorted_batches(self.lengths[:, 1], batch_size))
        total, right, count = 0.0, 0, 0
        for each in scored(batches):
            total, right, count = total + each.nats, right + each.right, count + each.tokens
        return total / max(count, 1), right / max(count, 1)

    def report(self, observer: Observer) -> None:
        """Report the number of pairs, and of those that are truncated or left out."""
        observer.say(f"{self.split}: {len(self):,} pairs")
        for count, what in ((self.truncated, "cut"), (self.left_out, "left out")):
            if count:
                observer.say(
                    f"warning: {count:,} pairs of {self.split} are longer than model.max_length"
                    f" ({self.config.model.max_length}) and were {what}"
                )


class _Selected:
    """Some rows of a column."""

    def __init__(self, column: Column, rows: Ids) -> None:
        self._column, self._rows = column, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> Ids:
        return self._column[int(self._rows[row])]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,): length of each sequence."""
        return self._column.lengths[self._rows]


class _Concatenated:
    """Concatenation of two columns."""

    def __init__(self, first: Column, second: Column) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __getitem__(self, row: int) -> Ids:
        beyond = row - len(self._first)
        return self._first[row] if beyond < 0 else self._second[beyond]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,): length of each sequence."""
        return np.concatenate((self._first.lengths, self._second.lengths))


def scoring(model: Seq2SeqModel, device: torch.device) -> ScorePairs:
    """Return a function that scores with a model in this process, for use in inference mode."""
    return partial(map, partial(predicted, model, device))


def predicted(model: Seq2SeqModel, device: torch.device, pairs: Pairs) -> Predicted:
    """Score the model's prediction of each target token given the previous ones."""
    places = _places(model.config, pairs, device) if model.pads(device) else None
    states, following = next_token_states(model, *_batch(model.config, pairs, device), places)
    logits = model.output(states)
    # Summed on the CPU: not every device has float64.
    nats = F.cross_entropy(logits, following, reduction="none").cpu().double().sum().item()
    return Predicted(nats, int(logits.argmax(dim=-1).eq(following).sum()), len(following))


def _batch(config: Seq2SeqConfig, pairs: Pairs, device: torch.device) -> tuple[Tensor, Tensor]:
    source, target = (
        torch.from_numpy(padded(pairs.sources, config.source_pad_id)),
        torch.from_numpy(padded(pairs.targets, config.target_pad_id)),
    )
    return to_device(source, device), to_device(target, device)


def _places(config: Seq2SeqConfig, pairs: Pairs, device: torch.device) -> Tensor:
    # Computed on the CPU: asking an accelerator which tokens are real would wait for all its queued work.
    real = torch.from_numpy(padded(pairs.targets, config.target_pad_id))[:, 1:] != config.target_pad_id
    return to_device(real.flatten().nonzero()[:, 0], device)


def next_token_states(
    model: Seq2SeqModel, source: Tensor, target: Tensor, places: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the states (N, C) that predict all real target tokens after the first, and these tokens' ids (N,).

    source: (B, S); target: (B, T + 1) from begin to end token; places: from `EncodedPairs.places`, for models that pad
    on the device.
    """
    given = _without_last(target, model.config.target_pad_id)
    if places is not None:
        states = model(source, given).flatten(0, 1)
        return gather(states, places), target[:, 1:].flatten().index_select(0, places)
    return model(source, given, packed=True), target[:, 1:][given != model.config.target_pad_id]


def _without_last(target: Tensor, pad_id: int) -> Tensor:
    """Return the decoder's inputs (B, T) for target (B, T + 1): each sequence without its last token."""
    return target[:, :-1].masked_fill(target[:, 1:] == pad_id, pad_id)


def perplexity(loss: float) -> float:
    """Return exp(loss) for a loss per token in nats, clipped to the range of a float."""
    return math.exp(min(loss, 700.0))
