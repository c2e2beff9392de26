"""What answering needs from a language model, whatever computes it. Only NumPy: no engine is imported."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids
from transformer.generation.interface import Generator

Floats = NDArray[np.floating[Any]]


class Engine(Protocol):
    """A language model that scores tokens."""

    @property
    def causal(self) -> bool:
        """Whether it predicts the next token; otherwise it predicts hidden ones."""

    @property
    def positions(self) -> int:
        """The longest context, in tokens."""

    @property
    def pad_id(self) -> int:
        """Fills up the texts of a batch."""

    @property
    def mask_id(self) -> int:
        """What hides a token from a masked model."""

    @property
    def generator(self) -> Generator:
        """Continues texts with a causal model."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """The log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,).

        token_ids: (B, T), padded at the end; places: in the flattened token_ids (B * T,).
        """

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Of all tokens, (M, V), at a few places; arguments as in `scored`."""

    def states(self, token_ids: Ids) -> Floats:
        """The states (B, T, C) of the last layer; those of padding are anything."""
