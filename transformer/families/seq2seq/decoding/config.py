"""Parameters of generating target sequences."""

import math
from typing import Literal

from pydantic import Field

from transformer.generation.config import SearchParams


class DecodingParams(SearchParams):
    """How translations are generated."""

    max_length_ratio: float | None = Field(gt=0)
    """If set, the length is also limited to ceil(ratio * source tokens) + max_length_extra."""
    max_length_extra: int = Field(ge=0)
    """Tokens added to `max_length_ratio` times the source tokens."""
    long_sources: Literal["cut", "split", "refuse"]
    """Sources longer than the model's positions: truncate, translate parts of similar length, or fail."""
    mbr_utility: Literal["none", "bleu", "chrf"]
    """Minimum Bayes risk decoding (Kumar and Byrne 2004) for `beam`: answer with the hypothesis of highest expected
    utility among all beam_size ones, instead of the best score; the utility is sentence BLEU on tokens or chrF on text.
    `n_best` follows that order, and `stopping` waits for beam_size hypotheses."""
    mbr_scale: float = Field(ge=0, le=100)
    """Exponent of the hypothesis probabilities in that expectation; 0 weights all equally."""

    @property
    def reranks(self) -> bool:
        """True if hypotheses are chosen by expected utility."""
        return self.mbr_utility != "none" and self.method == "beam" and self.beam_size > 1

    @property
    def candidates(self) -> int:
        """Number of hypotheses that the search returns."""
        return self.beam_size if self.reranks else self.n_best

    def limit(self, source_tokens: int, positions: int) -> int:
        """Return the maximum number of target tokens for a sentence, at least 1; positions: of the model."""
        limit = min(self.max_length, positions - 1)
        if self.max_length_ratio is not None:
            limit = min(limit, math.ceil(self.max_length_ratio * source_tokens) + self.max_length_extra)
        return max(limit, 1)
