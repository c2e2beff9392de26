"""What decoding needs from a model, whatever computes it, and what it returns. Only NumPy: no engine is imported."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.batching import Ids

Blocked = tuple[Ids, Ids]
"""Row and token of each continuation that is not allowed, (M,) each."""


class Generator(Protocol):
    """A model that predicts the next target token, given the source and the target so far."""

    @property
    def positions(self) -> int:
        """The longest source, and the longest target including its begin token, in tokens."""

    @property
    def source_pad_id(self) -> int:
        """Fills up the sources of a batch."""

    def start(self, source_ids: Ids) -> Any:
        """Encode source_ids (B, S). Returns a cache whose `select(rows)` selects rows, with repeats, in any order."""

    def best(self, last: Ids, cache: Any, count: int, blocked: Blocked | None) -> tuple[NDArray[np.floating[Any]], Ids]:
        """The `count` most probable tokens after one more target token per row, which is added to the cache.

        last: (B,), the token to add. Returns log probabilities and tokens, (B, min(count, V)) each, the most probable
        first, of equal ones the smallest id. The distribution has no padding or begin token. Blocked tokens have -inf;
        the others are not rescaled.
        """

    def log_probabilities(self, last: Ids, cache: Any, blocked: Blocked | None) -> NDArray[np.floating[Any]]:
        """As `best`, but of all tokens, (B, V)."""


@dataclass(frozen=True)
class Sources:
    """The sentences of one batch."""

    ids: Ids
    """(B, S), padded."""
    first: Ids
    """(B,) What each hypothesis follows: the begin token, or the last token of a prompt."""
    limits: list[int]
    """(B,) Maximum number of target tokens of each."""
    seeds: list[tuple[int, ...]]
    """(B,) The sampling seed of each: its number, and, if a long source is split, the part's number."""


class Hypothesis(NamedTuple):
    """A decoded target sequence."""

    ids: list[int]
    """Without begin and end token."""
    score: float
    """The log probability, normalized by length."""
    log_probability: float
    """The sum over the tokens, including the end token; padding and begin token are excluded from the distribution."""
    finished: bool
    """Whether it ended with the end token, not at the maximum length."""
