"""The training parameters of a language task."""

from pydantic import Field

from transformer.training.config import TrainParams


class LanguageTrainParams(TrainParams):
    """`train` of a language task."""

    mask_share: float = Field(gt=0, lt=1)
    """`masked`, `replaced`: share of the tokens that are hidden, chosen anew in each epoch (Devlin et al. 2019, section
    3.1)."""
    whole_words: bool
    """`masked`, `replaced`: choose all pieces of a word, or none."""
