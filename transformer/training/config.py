"""The parameters of training that all tasks share."""

from typing import Literal

from pydantic import Field

from transformer.params.schema import Section


class TrainParams(Section):
    """`train` of a task."""

    seed: int = Field(ge=0, lt=2**32)
    """Of the initial weights, dropout and the order of batches."""
    epochs: int = Field(ge=1)
    """Most passes over the training split."""
    patience: int | None = Field(ge=1)
    """Stop after so many epochs without a better validation figure; null never stops early."""
    batch_size: int = Field(ge=1)
    """Rows an update."""
    learning_rate: float = Field(gt=0)
    """Of Adam; with a warmup, the peak."""
    schedule: Literal["constant", "inverse_sqrt"]
    """`inverse_sqrt` falls with the square root of the step after the warmup (Vaswani et al. 2017, eq. 3)."""
    warmup: int = Field(ge=0)
    """Steps of linear increase from 0, with either schedule."""
    monitor: Literal["loss", "accuracy"]
    """The validation figure that chooses the best epoch."""
    clip: float | None = Field(gt=0)
    """Largest norm of the gradient; null for no limit."""
