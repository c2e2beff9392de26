"""Caches of decoders between generation steps."""

import torch
from torch import Tensor

from transformer.nn.attention import KeyValue
from transformer.nn.layout import Cache, selected


class DecoderCache(Cache):
    """Keys and values per layer: the target's grow with each step, the source's are projected once.

    Rows of one source (the hypotheses of a beam) share its keys and values as long as every source has the same number
    of adjacent rows.
    """

    def __init__(self, source: list[KeyValue], source_mask: Tensor) -> None:
        super().__init__()
        self.source = source
        """(N, H, S, D) each, by layer."""
        self.source_mask = source_mask
        """(N, 1, 1, S)."""
        self.rows_per_source = 1
        """B / N."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        super().select(rows)
        owners = rows // self.rows_per_source
        runs, counts = torch.unique_consecutive(owners, return_counts=True)
        self.rows_per_source = int(counts[0]) if len(counts) and bool(counts.eq(counts[0]).all()) else 1
        kept = runs if self.rows_per_source > 1 else owners
        if len(kept) != len(self.source_mask) or bool(kept.diff().ne(1).any()):
            self.source = [selected(held, kept) for held in self.source]
            self.source_mask = self.source_mask[kept]
