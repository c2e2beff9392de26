"""The interface of a translation model, of whatever kind, to training, evaluation and decoding."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from transformer.families.seq2seq.nn.config import Seq2SeqConfig
from transformer.nn.model import Model


class Cache(Protocol):
    """What a model keeps between steps of generation."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""


class Seq2SeqModel(Model):
    """Source and target ids in, the states before each next target token out; `output` makes logits of them."""

    config: Seq2SeqConfig

    output: nn.Linear
    """Maps states (..., C) to logits (..., V)."""

    @abstractmethod
    def token_tables(self) -> Sequence[nn.Embedding]:
        """The tables that embed source and target tokens; one of them twice if they share it."""

    @abstractmethod
    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """The states (B, T, C) for source_ids (B, S) and the target so far, target_ids (B, T).

        packed: return the states (N, C) of all positions but padding, in the order of target_ids[target_ids !=
        padding], and skip the computation of padding if the model can. `output` maps states to logits (..., V).
        """

    @abstractmethod
    def start(self, source_ids: Tensor) -> Cache:
        """Encode source_ids (B, S). Returns the cache for `step`."""

    @abstractmethod
    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """The states (B, C) after one more target token per row, target_ids (B,); cache: from `start`, is updated."""
