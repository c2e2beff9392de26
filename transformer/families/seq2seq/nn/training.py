"""The training parameters of a translation task."""

from typing import Self

from pydantic import Field, model_validator

from transformer.training.config import TrainParams


class Seq2SeqTrainParams(TrainParams):
    """`train` of a translation task."""

    bidirectional_epochs: int = Field(ge=0)
    """How many of the first epochs read every pair in both directions (Ding, Wu and Tao 2021), before training goes on
    with the direction that is asked for; needs one vocabulary for both languages."""
    simcut: float = Field(ge=0)
    """Weight of the divergence between a pass and one in which a share of the tokens is cut (SimCut, Gao et al. 2022);
    0 makes one pass."""
    cutoff: float = Field(gt=0, lt=1)
    """Share of the tokens, on both sides, that SimCut's second pass embeds as zeros; drawn anew in every update."""
    consistency_from: int = Field(ge=1)
    """The first epoch with the second pass of `r_drop` or `simcut`; the ones before it take half the time."""

    @model_validator(mode="after")
    def _one_second_pass(self) -> Self:
        if self.r_drop and self.simcut:
            raise ValueError("r_drop and simcut are two uses of a second pass: one of them must be 0")
        return self

    @model_validator(mode="after")
    def _reaches_its_last_phase(self) -> Self:
        later = {"bidirectional_epochs": self.bidirectional_epochs}
        if self.has_second_pass and self.consistency_from > 1:
            later["consistency_from"] = self.consistency_from
        for name, epoch in later.items():
            if epoch > self.epochs:
                raise ValueError(f"{name} ({epoch}) must be at most epochs ({self.epochs})")
            if epoch and self.patience is not None:
                raise ValueError(
                    f"with {name}, patience could end training before its last phase: set patience to null"
                )
        return self

    @property
    def has_second_pass(self) -> bool:
        """Whether some epoch compares two passes."""
        return bool(self.r_drop or self.simcut)
