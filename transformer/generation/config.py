"""Parameters of sequence generation."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section

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
