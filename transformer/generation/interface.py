"""The decoder's model interface and its results, for any backend. Only NumPy: no backend is imported."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids

Blocked = tuple[Ids, Ids]
"""Row and token of each blocked continuation, (M,) each."""


class Generator(Protocol):
    """A model that predicts the next target token, given the source and the target so far."""

    @property
    def positions(self) -> int:
        """Maximum length of the source, and of the target with its begin token, in tokens."""

    @property
    def source_pad_id(self) -> int:
        """Padding token of the sources."""

    def start(self, source_ids: Ids) -> Any:
        """Encode source_ids (B, S). Return a cache whose `select(rows)` selects rows, with repeats, in any order."""

    def best(self, last: Ids, cache: Any, count: int, blocked: Blocked | None) -> tuple[NDArray[np.floating[Any]], Ids]:
        """Return the `count` most probable tokens after appending one target token per row to the cache.

        last: (B,), the token to add. Returns log probabilities and tokens, (B, min(count, V)) each, the most probable
        first, of equal ones the smallest id. The distribution has no padding or begin token. Blocked tokens have -inf;
        the others are not rescaled.
        """

    def log_probabilities(self, last: Ids, cache: Any, blocked: Blocked | None) -> NDArray[np.floating[Any]]:
        """Return the log probabilities of all tokens, (B, V), after appending one target token per row to the cache."""


@dataclass(frozen=True)
class Sources:
    """The sentences of a batch."""

    ids: Ids
    """(B, S), padded."""
    first: Ids
    """(B,) First target token: the begin token, or the last token of a prompt."""
    limits: list[int]
    """(B,) Maximum number of target tokens."""
    seeds: list[tuple[int, ...]]
    """(B,) Sampling seed: the sentence's number, and for a split source the part's number."""


class Hypothesis(NamedTuple):
    """A decoded target sequence."""

    ids: list[int]
    """Token ids without begin and end token."""
    score: float
    """Log probability, normalized by length."""
    log_probability: float
    """Sum over the tokens, including the end token; padding and begin token are excluded from the distribution."""
    finished: bool
    """True if it ended with the end token, not at the maximum length."""
