"""Layout of a batch: padded, or packed without padding. A decoding step is a padded layout with a cache."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transformer.nn.attention import KeyValue
from transformer.nn.kernels.attention import Mask
from transformer.nn.kernels.linear import even
from transformer.nn.kernels.packing import BlockDiagonal, Blocks
from transformer.nn.masks import padding_mask

Pooling = Callable[[Tensor, Tensor], Tensor]
"""Whole sequences (B', T', C) and their padding mask (B', T', 1), True on real tokens -> one state each, (B', C)."""

# Attention runs on blocks of rows: larger blocks are padded more and their scores overflow the CPU cache, smaller ones
# mean more calls to small kernels.
_BLOCK_ROWS = 64
_BLOCK_SCORES = 2**20  # per head


class Cache:
    """Cached keys and values of the tokens before a decoding step."""

    def __init__(self) -> None:
        self.held: dict[int, KeyValue] = {}
        """Keys and values (B, H, T, D) per layer index."""

    @property
    def length(self) -> int:
        """Number of cached positions, T."""
        return next((held.key.shape[2] for held in self.held.values()), 0)

    def extend(self, layer: int, new: KeyValue) -> KeyValue:
        """Append a layer's keys and values of this step, (B, H, 1, D) each; return all of them so far."""
        if (held := self.held.get(layer)) is not None:
            new = KeyValue(*(torch.cat(pair, dim=2) for pair in zip(held, new, strict=True)))
        self.held[layer] = new
        return new

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.held = {layer: selected(held, rows) for layer, held in self.held.items()}


def selected(held: KeyValue, rows: Tensor) -> KeyValue:
    """Select rows of keys and values; rows: (B',), integer indices, repeats allowed."""
    return KeyValue(held.key.index_select(0, rows), held.value.index_select(0, rows))


class Layout(ABC):
    """Token layout of a batch, passed to a stack of layers; its states have the same layout."""

    token_ids: Tensor
    """(B, T), or (N,) packed."""
    positions: Tensor
    """Position of each token in its sequence: (T,), the same for all rows, or (N,) packed."""
    cache: Cache | None = None
    """Keys and values of the preceding tokens."""

    def extend(self, layer: int, new: KeyValue) -> KeyValue:
        """Return a layer's keys and values: the cached ones, if any, followed by the new ones."""
        return new if self.cache is None else self.cache.extend(layer, new)

    @abstractmethod
    def mask(self, keys: Self, *, causal: bool = False) -> Mask | None:
        """Return the attention mask from these tokens to the tokens `keys`, which masks their padding.

        causal: no token attends to a later one, so that padding at the end is already masked.
        """

    def real(self, states: Tensor) -> Tensor:
        """Return the states without the rows added to make the number of tokens even."""
        return states

    @abstractmethod
    def pooled(self, states: Tensor, pooling: Pooling) -> Tensor:
        """Pool to one state per sequence, (B, C) in batch order, from states in this layout."""


class Padded(Layout):
    """States (B, T, C), with padding at the end of shorter sequences."""

    def __init__(self, token_ids: Tensor, pad_id: int, cache: Cache | None = None) -> None:
        """token_ids: (B, T), following the cached tokens."""
        self.token_ids, self.pad_id, self.cache = token_ids, pad_id, cache
        start = 0 if cache is None else cache.length
        self.positions = torch.arange(start, start + token_ids.shape[1], device=token_ids.device)

    def mask(self, keys: Self, *, causal: bool = False) -> Tensor | None:
        """Return the mask (B, 1, 1, S), True on the real tokens of `keys`."""
        return None if causal else padding_mask(keys.token_ids, keys.pad_id)

    def pooled(self, states: Tensor, pooling: Pooling) -> Tensor:
        """Pool each row to one state, (B, C)."""
        return pooling(states, (self.token_ids != self.pad_id)[:, :, None])


class Packed(Layout):
    """States (N, C): all real tokens of a batch concatenated, followed by padding up to an even number, on CPUs.

    Token-wise layers (projections, feed-forward, norms, dropout) take the N tokens as they are; attention splits them
    into blocks of sequences of similar length and joins the blocks again. So a batch of mixed lengths costs hardly more
    than one of equal lengths, and batches need not be bucketed by length, which trains worse.
    """

    def __init__(self, token_ids: Tensor, pad_id: int, groups: Sequence[NDArray[np.int64]]) -> None:
        """token_ids: (B, T), padded at the end; groups: the row numbers of each block."""
        real = token_ids != pad_id
        lengths = real.sum(dim=1).numpy()
        self._count = int(lengths.sum())
        spare = even(self._count) - self._count
        positions = torch.arange(token_ids.shape[1]).expand_as(token_ids)[real]
        self.token_ids, self.positions = F.pad(token_ids[real], (0, spare), value=pad_id), F.pad(positions, (0, spare))
        self._groups = groups
        shapes = [(len(rows), int(lengths[rows].max())) for rows in groups]
        starts, offset = np.zeros(len(lengths), dtype=np.int64), 0
        for rows, (count, length) in zip(groups, shapes, strict=True):
            starts[rows] = offset + np.arange(count) * length
            offset += count * length
        places = torch.cat((torch.from_numpy(np.repeat(starts, lengths)) + positions, offset + torch.arange(spare)))
        self.blocks = Blocks(shapes, places, spare)
        self._real = self.blocks.split(torch.ones(len(places), 1).bool())
        self._masks = [None if bool(block.all()) else block[:, None, None, :, 0] for block in self._real]

    def mask(self, keys: Self, *, causal: bool = False) -> BlockDiagonal:
        """Return the block-diagonal mask; `keys` must have the same groups."""
        return BlockDiagonal(self.blocks, keys.blocks, [None] * len(keys._masks) if causal else keys._masks)

    def real(self, states: Tensor) -> Tensor:
        """Return the real tokens' states of (N, C)."""
        return states[: self._count]

    def pooled(self, states: Tensor, pooling: Pooling) -> Tensor:
        """Pool each sequence to one state, (B, C) in batch order."""
        blocks = zip(self.blocks.split(states), self._real, strict=True)
        by_group = torch.cat([pooling(block, real) for block, real in blocks])
        rows = torch.from_numpy(np.concatenate(self._groups))
        places = torch.empty_like(rows)
        places[rows] = torch.arange(len(rows))
        return by_group[places]


def layout_of(token_ids: Tensor, pad_id: int, *, packed: bool) -> Layout:
    """Make the layout of token_ids (B, T), padded at the end."""
    if not packed:
        return Padded(token_ids, pad_id)
    return Packed(token_ids, pad_id, bucket_by_length((token_ids != pad_id).sum(dim=1)))


def bucket_by_length(lengths: Tensor) -> list[NDArray[np.int64]]:
    """Group all row numbers by similar length; lengths: (B,), of whichever side dominates the cost of a row."""
    order = np.argsort(-lengths.numpy(), kind="stable")
    groups, start = [], 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = start + min(_BLOCK_ROWS, max(1, _BLOCK_SCORES // longest**2))
        groups.append(order[start:stop])
        start = stop
    return groups
