"""Interface of language model engines to inference. Imports only NumPy, no engine."""

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
        """True if it predicts the next token; otherwise it predicts masked ones."""

    @property
    def positions(self) -> int:
        """Maximum context length, in tokens."""

    @property
    def pad_id(self) -> int:
        """Padding token id."""

    @property
    def mask_id(self) -> int:
        """Id of the mask token."""

    @property
    def generator(self) -> Generator:
        """Generator that continues texts with a causal model."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """Return log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,).

        token_ids: (B, T), padded at the end; places: in the flattened token_ids (B * T,).
        """

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens, at a few places; arguments as in `scored`."""

    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""
