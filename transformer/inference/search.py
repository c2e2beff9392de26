"""Sequence generation for any backend: parameters, the model's interface, results. Only NumPy is imported."""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from transformer.core.validation import Section
from transformer.data.store import Ids

MOST = 10_000
"""Upper bound for `beam_size` and `n_best`: beyond it, memory runs out before an error can be reported."""


class SearchParams(Section):
    """How sequences are generated."""

    method: Literal["greedy", "beam", "sample"]
    """The most probable token each time, beam search, or random draws."""
    beam_size: int = Field(ge=1, le=MOST)
    """Running hypotheses per text of `beam`; 1 is greedy search."""
    n_best: int = Field(ge=1, le=MOST)
    """Hypotheses to return: the best of the beam, or this many samples."""
    stopping: Literal["exact", "heuristic", "first"]
    """When `beam` is done with a text. `exact`: when no running hypothesis can still become one of the n_best;
    `heuristic`: when beam_size have finished and the best running one would be no better than the worst of them if it
    ended here (transformers' `early_stopping=False`); `first`: when beam_size have finished (fairseq, transformers'
    `early_stopping=True`)."""
    length_normalization: Literal["none", "length", "gnmt"]
    """The score is the log probability divided by 1; `|Y|^alpha`; `((5 + |Y|) / 6)^alpha`."""
    length_penalty: float = Field(ge=0, le=10)
    """alpha; 0 does not normalize."""
    no_repeat_ngram: int | None = Field(ge=1)
    """No n-gram of this length occurs twice in a hypothesis."""
    max_length: int = Field(ge=1)
    """Maximum number of generated tokens, including the end token."""
    temperature: float = Field(ge=1e-6)
    """Logits are divided by it before `sample` draws."""
    top_k: int | None = Field(ge=1)
    """`sample` draws from the k most probable tokens."""
    top_p: float | None = Field(gt=0, le=1)
    """`sample` draws from the smallest set of most probable tokens with at least this total probability."""
    seed: int = Field(ge=0)
    """Seed of `sample`; every text has its own random numbers."""
    batch_size: int = Field(ge=1)
    """Texts per batch."""

    @model_validator(mode="after")
    def _as_many_as_the_method_finds(self) -> Self:
        if self.method == "greedy" and self.n_best > 1:
            raise ValueError(f"greedy finds one answer, so n_best must be 1, not {self.n_best}; or use beam")
        if self.method == "beam" and self.n_best > self.beam_size:
            raise ValueError(f"n_best ({self.n_best}) must not be more than beam_size ({self.beam_size})")
        return self

    def normalized(self, log_probability: float, length: int) -> float:
        """Return the score that ranks hypotheses; length: number of tokens, including the end token.

        `length` is as in fairseq and CTranslate2. `gnmt` is Wu et al. 2016, eq. 14.
        """
        if self.length_normalization == "none":
            return log_probability
        base = length if self.length_normalization == "length" else (5 + length) / 6
        return log_probability / math.pow(base, self.length_penalty)


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
