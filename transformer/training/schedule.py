"""Learning-rate schedules in closed form."""

import math
from dataclasses import dataclass

from transformer.training.config import TrainParams


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
