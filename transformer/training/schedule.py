"""Parameters of training, and the learning-rate schedule."""

import math
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.validation import Section


class TrainParams(Section):
    """`train` of a task."""

    seed: int = Field(ge=0, lt=2**32)
    """Seeds the initial weights, dropout and the order of batches."""
    epochs: int = Field(ge=1)
    """Maximum number of passes over the training split."""
    patience: int | None = Field(ge=1)
    """Stop after this many epochs without a better validation metric; null never stops early."""
    batch_size: int = Field(ge=1)
    """Size of a batch in `batch_unit`."""
    batch_unit: Literal["rows", "tokens"]
    """`tokens` fills a batch with rows until the tokens of their longer sides would exceed `batch_size`."""
    accumulation: int = Field(ge=1)
    """Batches per update (gradient accumulation): equivalent to one batch of their total size."""
    shards: int = Field(ge=1, le=1024)
    """Parts that each update is cut into, a power of 2; up to so many processes may compute them, with one result."""
    optimizer: Literal["adam", "adamw"]
    """Adam (Kingma and Ba 2015), or with decoupled weight decay (Loshchilov and Hutter 2019)."""
    betas: list[float] = Field(min_length=2, max_length=2)
    """Decay of the running means of the gradient and of its square; the paper uses 0.9 and 0.98 (section 5.3)."""
    epsilon: float = Field(gt=0)
    """Added to the root of the mean square; the paper uses 1e-9."""
    weight_decay: float = Field(ge=0)
    """AdamW's decay per update, times the learning rate; not applied to biases, norms and other vectors."""
    learning_rate: float = Field(gt=0)
    """The peak rate of every schedule but `noam`, where it is a factor."""
    schedule: Literal["constant", "noam", "inverse_sqrt", "linear", "cosine"]
    """The course of the learning rate after the warmup, see `training.schedule`."""
    warmup: int = Field(ge=0)
    """Updates of linear warmup from 0, with every schedule."""
    label_smoothing: float = Field(ge=0, lt=1)
    """Share of the target probability spread uniformly over all classes (section 5.4)."""
    r_drop: float = Field(ge=0)
    """Weight of the divergence between two passes with different dropout (Liang et al. 2021); 0 makes one pass."""
    word_dropout: float = Field(ge=0, lt=1)
    """Share of the tokens hidden from the encoder, drawn anew in every update (Iyyer et al. 2015)."""
    averaging: Literal["none", "last", "best", "ema"]
    """Which weights are kept: the best epoch's, the mean of the last or best `average_epochs` epochs, or the best
    epoch's exponential moving average."""
    average_epochs: int = Field(ge=1)
    """Number of epochs averaged by `last` and `best`; all of them, if a training has fewer."""
    ema_decay: float = Field(gt=0, lt=1)
    """Decay of the moving average per update."""
    monitor: Literal["loss", "accuracy"]
    """The validation metric that selects the best epoch; ties in accuracy go to the lower loss."""
    clip: float | None = Field(gt=0)
    """Maximum norm of the gradient; null for no clipping."""
    non_finite: Literal["stop", "skip"]
    """Action on an update with a non-finite loss or gradient: end training, or skip and count the update."""
    out_of_memory: Literal["stop", "halve"]
    """Action when a batch does not fit into memory: end training, or split it and all later ones, still with one update
    per batch."""

    @property
    def validation_rows(self) -> int:
        """Batch size of validation, in rows (`batch_size` may count tokens); it affects no metric."""
        return self.batch_size if self.batch_unit == "rows" else 128

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas ({self.betas}) must be at least 0 and below 1")
        if self.shards & (self.shards - 1):
            raise ValueError(f"shards ({self.shards}) must be a power of 2")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("weight_decay needs optimizer `adamw`: set it to 0, or optimizer to `adamw`")
        if self.schedule == "noam" and not self.warmup:
            raise ValueError("schedule `noam` needs a warmup of at least 1 update")
        return self


@dataclass(frozen=True)
class Schedule:
    """Learning rate of each update of a training run."""

    params: TrainParams
    total: int
    """Total number of updates: where `linear` and `cosine` reach 0."""
    d_model: int
    """Model width, for `noam`."""

    def __call__(self, step: int) -> float:
        """Return the learning rate of update `step` (from 1).

        It rises linearly over the warmup, then stays constant (constant), decays as sqrt(warmup / step) (inverse_sqrt),
        or decays to 0 at the end of training along a line (linear) or half a cosine (cosine; Loshchilov and Hutter
        2017, eq. 5). `noam` is eq. 3 of Vaswani et al. 2017, d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), times
        `learning_rate`.
        """
        peak, warmup = self.params.learning_rate, self.params.warmup
        if self.params.schedule == "noam":
            return float(peak * self.d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
        if step < warmup:
            return peak * step / warmup
        if self.params.schedule == "inverse_sqrt":
            return peak * math.sqrt(max(warmup, 1) / step)
        done = min(max(step - warmup, 0) / max(self.total - warmup, 1), 1.0)
        if self.params.schedule == "linear":
            return peak * (1 - done)
        if self.params.schedule == "cosine":
            return peak * 0.5 * (1 + math.cos(math.pi * done))
        return peak
