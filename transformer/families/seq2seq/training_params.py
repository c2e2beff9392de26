"""Training parameters of translation models."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.training.schedule import TrainParams


class Seq2SeqTrainParams(TrainParams):
    """`train` of a translation task."""

    too_long: Literal["cut", "leave_out"]
    """Training pairs with a side of more than `model.max_length` tokens: `cut` trains on their beginnings, which
    teaches the model to stop early; `leave_out` does not train on them."""
    bidirectional_epochs: int = Field(ge=0)
    """Number of first epochs that train on every pair in both directions (Ding, Wu and Tao 2021), before training
    continues in the requested direction; needs one vocabulary for both languages."""
    simcut: float = Field(ge=0)
    """Weight of the divergence between two forward passes, one with token cutoff (SimCut, Gao et al. 2022);
    0 for a single pass."""
    cutoff: float = Field(gt=0, lt=1)
    """Fraction of the tokens, on both sides, that SimCut's second pass embeds as zeros; drawn anew in every update."""
    consistency_from: int = Field(ge=1)
    """First epoch with the second pass of `r_drop` or `simcut`, which more than doubles the time per update."""

    @model_validator(mode="after")
    def _one_second_pass(self) -> Self:
        if self.r_drop and self.simcut:
            raise ValueError("r_drop and simcut are two uses of a second pass: one of them must be 0")
        return self

    @model_validator(mode="after")
    def _are_followed_by_one_direction(self) -> Self:
        if not self.bidirectional_epochs:
            return self
        left = self.epochs - self.bidirectional_epochs
        if left < 1:
            raise ValueError(f"bidirectional_epochs ({self.bidirectional_epochs}) must be below epochs ({self.epochs})")
        if self.averaging in ("last", "best") and self.average_epochs > left:
            raise ValueError(
                f"the mean of the {self.averaging} average_epochs ({self.average_epochs}) would include epochs in both"
                f" directions: set it to {left} at most, or raise epochs"
            )
        if self.patience is not None:
            raise ValueError(
                "with bidirectional_epochs, patience could end training before it reads one direction alone: set"
                " patience to null"
            )
        return self

    @model_validator(mode="after")
    def _reaches_the_second_pass(self) -> Self:
        if not (self.r_drop or self.simcut) or self.consistency_from == 1:
            return self
        if self.consistency_from > self.epochs:
            raise ValueError(f"consistency_from ({self.consistency_from}) must be at most epochs ({self.epochs})")
        if self.patience is not None:
            raise ValueError(
                "with consistency_from, patience could end training before the second pass begins: set patience to null"
            )
        return self

    def compares_passes(self, epoch: int) -> bool:
        """True if an epoch, counted from 1, has the second pass."""
        return bool(self.r_drop or self.simcut) and epoch >= self.consistency_from
