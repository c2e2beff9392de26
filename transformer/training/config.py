"""The parameters of training that all tasks share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section


class TrainParams(Section):
    """`train` of a task."""

    seed: int = Field(ge=0, lt=2**32)
    """Of the initial weights, dropout and the order of batches."""
    epochs: int = Field(ge=1)
    """Most passes over the training split."""
    patience: int | None = Field(ge=1)
    """Stop after so many epochs without a better validation figure; null never stops early."""
    batch_size: int = Field(ge=1)
    """Size of a batch in `batch_unit`."""
    batch_unit: Literal["rows", "tokens"]
    """`tokens` fills a batch with rows until the tokens of their longer sides would pass `batch_size`."""
    accumulation: int = Field(ge=1)
    """Batches an update: their gradients are those of one batch as large as all of them together."""
    optimizer: Literal["adam", "adamw"]
    """Adam (Kingma and Ba 2015), or with decoupled weight decay (Loshchilov and Hutter 2019)."""
    betas: list[float] = Field(min_length=2, max_length=2)
    """Decay of the running mean of gradients, and of their squares; the paper takes 0.9 and 0.98 (section 5.3)."""
    epsilon: float = Field(gt=0)
    """Added to the root of the mean square; the paper takes 1e-9."""
    weight_decay: float = Field(ge=0)
    """AdamW's decay an update, times the learning rate; not on biases, norms and other vectors."""
    learning_rate: float = Field(gt=0)
    """The highest rate of every schedule but `noam`, where it is a factor."""
    schedule: Literal["constant", "noam", "inverse_sqrt", "linear", "cosine"]
    """How the learning rate goes on after the warmup, see `training.schedule`."""
    warmup: int = Field(ge=0)
    """Updates of linear increase from 0, with every schedule."""
    label_smoothing: float = Field(ge=0, lt=1)
    """Share of the target probability that is spread evenly over all classes (section 5.4)."""
    r_drop: float = Field(ge=0)
    """Weight of the divergence between two passes with different dropout (Liang et al. 2021); 0 makes one pass."""
    word_dropout: float = Field(ge=0, lt=1)
    """Share of the tokens that the encoder does not get to see, others in every update (Iyyer et al. 2015)."""
    averaging: Literal["none", "last", "best", "ema"]
    """Weights that are kept: the best epoch's, the mean of the last or the best `average_epochs` epochs, or the best
    epoch's exponential moving average."""
    average_epochs: int = Field(ge=1)
    """Epochs in the mean of `last` and `best`."""
    ema_decay: float = Field(gt=0, lt=1)
    """What an update keeps of the moving average."""
    monitor: Literal["loss", "accuracy"]
    """The validation figure that chooses the best epoch; of epochs with the same accuracy, the lower loss."""
    clip: float | None = Field(gt=0)
    """Largest norm of the gradient; null for no limit."""
    non_finite: Literal["stop", "skip"]
    """An update whose loss or gradient is not finite ends the training, or is left out and counted."""
    out_of_memory: Literal["stop", "halve"]
    """A batch that does not fit into memory ends the training, or is split, as all that follow, with one update."""

    @property
    def validation_rows(self) -> int:
        """Rows that are validated together, which changes no figure; `batch_size` may count tokens."""
        return self.batch_size if self.batch_unit == "rows" else 128

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas ({self.betas}) must be at least 0 and below 1")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("weight_decay needs optimizer `adamw`: set it to 0, or optimizer to `adamw`")
        if self.schedule == "noam" and not self.warmup:
            raise ValueError("schedule `noam` needs a warmup of at least 1 update")
        return self
