"""Base of the engines for converted language models."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from transformer.encoded.batching import Ids
from transformer.families.language.conversion.uncached import UncachedGenerator
from transformer.families.language.decoding.interface import Floats
from transformer.generation.interface import Generator

_PLACES = 2048  # positions whose distributions are in memory at a time


class Sizes(NamedTuple):
    """Model properties that an engine needs besides the weights."""

    causal: bool
    positions: int
    pad_id: int
    mask_id: int
    never: tuple[int, ...]
    """Tokens that are never generated."""


class ConvertedEngine(ABC):
    """Base of engines that score whole texts. Unless it sets another generator, nothing is cached between steps."""

    def __init__(self, sizes: Sizes) -> None:
        self.causal, self.positions, self.pad_id, self.mask_id, _ = sizes
        self.generator: Generator = UncachedGenerator(self, sizes.never)

    @abstractmethod
    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens at places (M,) of the flattened token_ids (B * T,)."""

    @abstractmethod
    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """Return log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,)."""
        length = token_ids.shape[1]
        texts = max(1, _PLACES // length)
        values, best = np.empty(len(places), dtype=np.float32), np.empty(len(places), dtype=np.int64)
        for start in range(0, len(token_ids), texts):
            inside = np.flatnonzero((places >= start * length) & (places < (start + texts) * length))
            if len(inside):
                part = token_ids[start : start + texts]
                found = self.log_probabilities(part, places[inside] - start * length)
                values[inside] = found[np.arange(len(inside)), targets[inside]]
                best[inside] = found.argmax(axis=1)
        return values, best
