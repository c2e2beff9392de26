"""Interface of translation models to training, evaluation and decoding."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from transformer.families.seq2seq.nn.config import Seq2SeqConfig
from transformer.nn.model import Model


class Cache(Protocol):
    """State of a model between generation steps."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""


class Seq2SeqModel(Model):
    """Maps source and target ids to the states before each next target token, which `output` maps to logits."""

    config: Seq2SeqConfig

    output: nn.Linear
    """Maps states (..., C) to logits (..., V)."""

    @abstractmethod
    def token_tables(self) -> Sequence[nn.Embedding]:
        """Return the embeddings of source and target tokens; the same one twice if they share it."""

    @abstractmethod
    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) for source_ids (B, S) and the target so far, target_ids (B, T).

        packed: return the states (N, C) of all positions but padding, in the order of target_ids[target_ids !=
        padding], and skip computation on padding if the model can. `output` maps states to logits (..., V).
        """

    @abstractmethod
    def start(self, source_ids: Tensor) -> Cache:
        """Encode source_ids (B, S). Returns the cache for `step`."""

    @abstractmethod
    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache from `start`. Returns the states (B, C)."""
