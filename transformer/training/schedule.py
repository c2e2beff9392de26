"""Learning-rate schedules as factors of the peak."""

from transformer.training.config import TrainParams


def learning_rate_at(step: int, params: TrainParams) -> float:
    """The learning rate of update `step` (from 1).

    It rises linearly over the warmup; then it stays, or falls as peak * sqrt(warmup / step), which is eq. 3 of
    Vaswani et al. 2017 with the peak given instead of derived from d_model.
    """
    if step < params.warmup:
        return params.learning_rate * step / params.warmup
    if params.schedule == "constant":
        return params.learning_rate
    return params.learning_rate * float((max(params.warmup, 1) / step) ** 0.5)
