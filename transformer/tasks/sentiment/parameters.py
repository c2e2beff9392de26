"""Parameters of the sentiment task that more than one stage reads."""

from typing import Literal

from transformer.training.config import TrainParams


class SentimentTrainParams(TrainParams):
    """`sentiment.train`."""

    monitor: Literal["loss", "accuracy"]
    """The validation figure that chooses the best epoch."""
