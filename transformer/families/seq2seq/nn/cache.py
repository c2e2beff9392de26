"""Caches of decoders between generation steps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.families.seq2seq.nn.recurrent_attention import Memory
from transformer.nn.attention import KeyValue
from transformer.nn.layout import Cache, selected
from transformer.nn.recurrent import State


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


@dataclass
class RecurrentCache:
    """The decoder's current states, and its per-step inputs from the source."""

    layers: list[State]
    """By decoder layer, (B, C) each."""
    fed: Tensor
    """Next input of the cell besides the token: the fixed context (B, M), or Luong's last attentional vector (B, C).
    Bahdanau's context is computed in the step."""
    memory: Memory | None
    """Keys and values of the source for attention; None without attention."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.layers = [tuple(part[rows] for part in state) for state in self.layers]
        self.fed = self.fed[rows]
        if self.memory is not None:
            self.memory = Memory(*(part[rows] for part in self.memory))

    def shorten(self, rows: int) -> None:
        """Keep only the first `rows` rows."""
        if rows < len(self.fed):
            self.layers = [tuple(part[:rows] for part in state) for state in self.layers]
            self.fed = self.fed[:rows]
            if self.memory is not None:
                self.memory = Memory(*(part[:rows] for part in self.memory))
