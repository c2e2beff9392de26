"""How a language model answers."""

from pydantic import Field

from transformer.generation.config import SearchParams


class AnswerParams(SearchParams):
    """How texts are continued, and scored."""

    stride: int | None = Field(ge=1)
    """Texts longer than the context are scored in windows that start this many tokens apart, so that most tokens have
    a long context (with `masked`, on both sides); null for windows that do not overlap."""
    apart: int = Field(ge=2)
    """`masked`: every token is predicted, in as many passes over a text, each of which hides one token of this many."""


class AnsweringParams(AnswerParams, extra="ignore"):
    """The part of `evaluate` that a model needs to answer, without how answers are judged."""
