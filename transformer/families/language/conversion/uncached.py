"""Generation without a cache: each step processes the whole text so far."""

import numpy as np

from transformer.encoded.batching import Ids
from transformer.families.language.decoding.interface import Engine, Floats
from transformer.generation.distribution import best
from transformer.generation.interface import Blocked


class _Texts:
    """The texts so far."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        self.ids = self.ids[rows]


class UncachedGenerator:
    """A `Generator` on top of an engine."""

    def __init__(self, engine: Engine, never: tuple[int, ...]) -> None:
        """never: tokens that are never generated."""
        self._engine, self._never = engine, list(never)
        self.positions, self.source_pad_id = engine.positions, engine.pad_id

    def start(self, source_ids: Ids) -> _Texts:
        """Start from prompts (B, T) of equal length. Returns the state for the first step."""
        return _Texts(source_ids)

    def best(self, last: Ids, cache: _Texts, count: int, blocked: Blocked | None) -> tuple[Floats, Ids]:
        """Return the `count` largest log probabilities after `last` (B,), and their tokens, (B, count) each."""
        return best(self.log_probabilities(last, cache, blocked), count)

    def log_probabilities(self, last: Ids, cache: _Texts, blocked: Blocked | None) -> Floats:
        """Return log probabilities (B, V) of the token after `last` (B,), -inf for those never generated or blocked."""
        cache.ids = np.concatenate((cache.ids, last[:, None]), axis=1)
        places = np.arange(1, len(last) + 1) * cache.ids.shape[1] - 1
        return allowed(self._engine.log_probabilities(cache.ids, places), self._never, blocked)


def allowed(found: Floats, never: list[int], blocked: Blocked | None) -> Floats:
    """Renormalise log probabilities (B, V) in place without the tokens `never`, then set blocked ones to -inf."""
    found[:, never] = -np.inf
    found -= np.log(np.exp(found.astype(np.float64)).sum(axis=1, keepdims=True)).astype(found.dtype)
    if blocked is not None:
        found[blocked] = -np.inf
    return found
