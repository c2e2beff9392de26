"""What training, evaluating and decoding need of a translation model, whatever its kind."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from torch import Tensor, nn

from transformer.nn.seq2seq.config import Seq2SeqConfig


class Cache(Protocol):
    """What a model keeps between two steps of generation."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""


class Seq2SeqModel(nn.Module, ABC):
    """Source ids in, target logits out."""

    config: Seq2SeqConfig
    output: nn.Linear
    """From states (..., C) to logits (..., V)."""

    @abstractmethod
    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """The states (B, T, C) for source_ids (B, S) and the target so far, target_ids (B, T).

        `output` turns states into logits (B, T, V); the loss needs it on real positions only.
        """

    @abstractmethod
    def start(self, source_ids: Tensor) -> Cache:
        """Encode source_ids (B, S) and make ready for `step`."""

    @abstractmethod
    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """The logits (B, V) after one more target token a row, target_ids (B,); cache: what `start` gave, moves on."""
