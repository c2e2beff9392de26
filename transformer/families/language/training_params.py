"""Training parameters of language models."""

from typing import Self

from pydantic import Field, model_validator

from transformer.training.schedule import TrainParams


class LanguageTrainParams(TrainParams):
    """`train` of a language task."""

    mask_share: float = Field(gt=0, lt=1)
    """`masked`: fraction of the tokens that are masked, drawn anew in each epoch (Devlin et al. 2019, section 3.1)."""
    whole_words: bool
    """`masked`: mask all pieces of a word, or none."""

    @model_validator(mode="after")
    def _drops_no_words(self) -> Self:
        if self.word_dropout:
            raise ValueError("word_dropout is not for language models, which hide tokens by mask_share: set it to 0")
        return self
