"""Packed sequences: a batch's N real tokens concatenated, which attention splits into blocks of similar length."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


def scatter(rows: Tensor, index: Tensor, size: int) -> Tensor:
    """Scatter rows: (N, C) -> (size, C), to the unique places in `index` (N,), with zeros elsewhere.

    Replaces `places = zeros(size, C); places[index] = rows`, whose gradient copies all places first.
    """
    places: Tensor = _Scatter.apply(rows, index, size)  # type: ignore[no-untyped-call]
    return places


def gather(places: Tensor, index: Tensor) -> Tensor:
    """Gather rows, (size, C) -> (N, C). Replaces `places[index]`, whose gradient assumes that places may repeat."""
    rows: Tensor = _Gather.apply(places, index)  # type: ignore[no-untyped-call]
    return rows


class _Scatter(torch.autograd.Function):
    """Scatter to unique places, so that the gradient is a plain lookup."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(index)
        return rows.new_zeros(size, rows.shape[1]).index_copy_(0, index, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        return gradient.index_select(0, index), None, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, places: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.size = len(places)
        return places.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size, gradient.shape[1]).index_copy_(0, index, gradient), None


class Blocks:
    """Maps packed tokens to blocks of rows of similar length, each padded to its longest row."""

    def __init__(self, shapes: Sequence[tuple[int, int]], index: Tensor, spare: int = 0) -> None:
        """shapes: rows and length of each block; index: (N,), each token's place in the concatenated blocks.

        spare: places after them, for tokens that belong to no block.
        """
        self.shapes, self._index, self._spare = shapes, index, spare
        self._sizes = [rows * length for rows, length in shapes]

    def split(self, tokens: Tensor) -> list[Tensor]:
        """Split tokens (N, C) into the blocks, (B', T', C) each, zero on padding."""
        sizes = [*self._sizes, self._spare]
        parts = torch.split(scatter(tokens, self._index, sum(sizes)), sizes)[:-1]
        return [part.view(*shape, -1) for part, shape in zip(parts, self.shapes, strict=True)]

    def join(self, blocks: Sequence[Tensor]) -> Tensor:
        """Join the blocks, (B', T', C) each, into (N, C), zero for tokens of no block."""
        places = torch.cat([block.flatten(0, 1) for block in blocks])
        return gather(F.pad(places, (0, 0, 0, self._spare)) if self._spare else places, self._index)


class BlockDiagonal(NamedTuple):
    """Mask of packed sequences: each query attends to the keys of its own sequence.

    Each block of queries and the corresponding block of keys contain the same sequences.
    """

    queries: Blocks
    keys: Blocks
    masks: Sequence[Tensor | None]
    """(B', 1, 1, S') per block, True on its real keys; None for a block without padding."""

    def split(self, query: Tensor, key: Tensor, value: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Split heads (H, N, D) and (H, M, D) into (B', H, T', D), (B', H, S', D) and the mask, per block."""
        queries, keys, values = (
            [block.view(*block.shape[:2], len(heads), -1).transpose(1, 2) for block in side.split(merged(heads))]
            for side, heads in ((self.queries, query), (self.keys, key), (self.keys, value))
        )
        return list(zip(queries, keys, values, self.masks, strict=True))

    def join(self, attended: Sequence[Tensor]) -> Tensor:
        """Join each block's heads (B', H, T', D) into (H, N, D)."""
        tokens = self.queries.join([merged(block) for block in attended])
        return tokens.view(len(tokens), attended[0].shape[1], -1).transpose(0, 1)


def merged(heads: Tensor) -> Tensor:
    """Concatenate heads: (..., H, T, D) -> (..., T, H * D)."""
    return heads.transpose(-3, -2).flatten(-2)
