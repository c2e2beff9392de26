"""The parameters of generating target sequences."""

import math
from typing import Literal

from pydantic import Field

from transformer.generation.config import SearchParams


class DecodingParams(SearchParams):
    """How translations are made."""

    max_length_ratio: float | None = Field(gt=0)
    """If set, also at most ceil(ratio * source tokens) + max_length_extra."""
    max_length_extra: int = Field(ge=0)
    """Tokens added to `max_length_ratio` times the source's."""
    long_sources: Literal["cut", "split", "refuse"]
    """Sources longer than the model's positions: keep the beginning, translate parts of similar length, or fail."""
    mbr_utility: Literal["none", "bleu", "chrf"]
    """What `beam` answers with: the hypothesis with the best score, or of all beam_size the one with the most expected
    utility (minimum Bayes risk, Kumar and Byrne 2004), which is the sentence BLEU of its tokens or the chrF of its
    text. The others of `n_best` follow in that order, and `stopping` waits for beam_size hypotheses."""
    mbr_scale: float = Field(ge=0, le=100)
    """The power of the probabilities that the hypotheses have in that expectation; 0 counts all alike."""

    @property
    def reranks(self) -> bool:
        """Whether hypotheses are chosen by their expected utility."""
        return self.mbr_utility != "none" and self.method == "beam" and self.beam_size > 1

    @property
    def candidates(self) -> int:
        """How many hypotheses the search is to find."""
        return self.beam_size if self.reranks else self.n_best

    def limit(self, source_tokens: int, positions: int) -> int:
        """The maximum number of target tokens for a sentence, at least 1; positions: how many the model has."""
        limit = min(self.max_length, positions - 1)
        if self.max_length_ratio is not None:
            limit = min(limit, math.ceil(self.max_length_ratio * source_tokens) + self.max_length_extra)
        return max(limit, 1)
