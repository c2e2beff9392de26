"""Parameters that change more slowly than others, or later."""

from typing import NamedTuple


class Pace(NamedTuple):
    """How a parameter follows the learning rate."""

    factor: float = 1.0
    """Of the learning rate."""
    frozen_updates: int = 0
    """Updates at the beginning that leave it as it is."""

    def rate(self, rate: float, step: int) -> float:
        """Its learning rate at an update, counted from 1."""
        return rate * self.factor if step > self.frozen_updates else 0.0
