"""Inference parameters of language models."""

from pydantic import Field

from transformer.generation.config import SearchParams


class AnswerParams(SearchParams):
    """How texts are continued and scored."""

    stride: int | None = Field(ge=1)
    """Texts longer than the context are scored in windows that start this many tokens apart, so that most tokens have a
    long context (with `masked`, on both sides); null for windows that do not overlap."""
    apart: int = Field(ge=2)
    """`masked`: tokens are scored in this many passes over a text, each of which masks every
    n-th token, n being this number."""


class AnsweringParams(AnswerParams, extra="ignore"):
    """The parameters of `evaluate` that inference needs, without those of scoring."""
