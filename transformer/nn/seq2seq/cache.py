"""What a decoder keeps between two steps of generation."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.nn.attention import KeyValue


@dataclass
class DecoderCache:
    """Keys and values a layer: of the source, projected once, and of the target so far, which grow by each step."""

    source: list[KeyValue]
    source_mask: Tensor
    """(B, 1, 1, S)."""
    target: list[KeyValue | None] = field(default_factory=list)
    length: int = 0
    """Target positions already held."""

    def __post_init__(self) -> None:
        self.target = self.target or [None] * len(self.source)

    def extend(self, layer: int, new: KeyValue) -> KeyValue:
        """Append one step's keys and values, (B, H, 1, D) each, and return all of them so far."""
        held = self.target[layer]
        grown = new if held is None else KeyValue(*(torch.cat(pair, dim=2) for pair in zip(held, new, strict=True)))
        self.target[layer] = grown
        return grown

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices."""
        self.source = [_rows(held, rows) for held in self.source]
        self.source_mask = self.source_mask[rows]
        self.target = [None if held is None else _rows(held, rows) for held in self.target]


def _rows(held: KeyValue, rows: Tensor) -> KeyValue:
    return KeyValue(held.key[rows], held.value[rows])
