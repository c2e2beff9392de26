"""The parameters of the figures stage that all tasks share."""

from typing import Literal

from pydantic import Field, field_validator

from transformer.core.schema import Section


class FiguresParams(Section):
    """`figures` of a task."""

    sentences: list[str] = Field(max_length=20)
    """Raw texts whose attention is drawn; with none, the first 3 of the validation split."""
    layers: Literal["last", "all"]
    """The layers whose heads are drawn."""

    @field_validator("sentences")
    @classmethod
    def _no_empty_text(cls, sentences: list[str]) -> list[str]:
        if not all(sentence.strip() for sentence in sentences):
            raise ValueError("a sentence is empty: write one, or take its line out")
        return sentences
