"""What a decoder keeps between two steps of generation."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.nn.attention import KeyValue


@dataclass
class DecoderCache:
    """Keys and values a layer: of the source, projected once, and of the target so far, which grow by each step.

    Rows of one source (the hypotheses of a beam) share its keys and values as long as every source has equally many
    rows, side by side.
    """

    source: list[KeyValue]
    """(N, H, S, D) each."""
    source_mask: Tensor
    """(N, 1, 1, S)."""
    target: list[KeyValue | None] = field(default_factory=list)
    """(B, H, T, D) each."""
    length: int = 0
    """Target positions already held."""
    rows_per_source: int = 1
    """B / N."""

    def __post_init__(self) -> None:
        self.target = self.target or [None] * len(self.source)

    def extend(self, layer: int, new: KeyValue) -> KeyValue:
        """Append one step's keys and values, (B, H, 1, D) each, and return all of them so far."""
        held = self.target[layer]
        grown = new if held is None else KeyValue(*(torch.cat(pair, dim=2) for pair in zip(held, new, strict=True)))
        self.target[layer] = grown
        return grown

    def by_source(self, states: Tensor) -> Tensor:
        """States (B, 1, C) as (N, B / N, C): rows of one source as queries side by side, for what looks at it only."""
        return states.reshape(len(self.source_mask), self.rows_per_source, -1)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices that may repeat."""
        self.target = [None if held is None else _rows(held, rows) for held in self.target]
        owners = rows // self.rows_per_source
        runs, counts = torch.unique_consecutive(owners, return_counts=True)
        self.rows_per_source = int(counts[0]) if len(counts) and bool(counts.eq(counts[0]).all()) else 1
        kept = runs if self.rows_per_source > 1 else owners
        if len(kept) != len(self.source_mask) or bool(kept.diff().ne(1).any()):
            self.source = [_rows(held, kept) for held in self.source]
            self.source_mask = self.source_mask[kept]


def _rows(held: KeyValue, rows: Tensor) -> KeyValue:
    return KeyValue(held.key.index_select(0, rows), held.value.index_select(0, rows))
