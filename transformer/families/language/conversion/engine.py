"""What the engines of converted language models have in common."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from transformer.encoded.batching import Ids
from transformer.families.language.conversion.uncached import UncachedGenerator
from transformer.families.language.decoding.interface import Floats
from transformer.generation.interface import Generator

_PLACES = 2048  # whose distributions over the vocabulary are in memory at a time


class Sizes(NamedTuple):
    """What an engine must know of its model besides the weights."""

    causal: bool
    positions: int
    pad_id: int
    mask_id: int
    never: tuple[int, ...]
    """The tokens that are never generated."""


class ConvertedEngine(ABC):
    """An `Engine` that reads whole texts; unless it has another generator, it keeps nothing between two steps."""

    def __init__(self, sizes: Sizes) -> None:
        self.causal, self.positions, self.pad_id, self.mask_id, _ = sizes
        self.generator: Generator = UncachedGenerator(self, sizes.never)

    @abstractmethod
    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """As `Engine.log_probabilities`."""

    @abstractmethod
    def states(self, token_ids: Ids) -> Floats:
        """As `Engine.states`."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """As `Engine.scored`."""
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
