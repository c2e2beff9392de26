"""Parameters that change more slowly than others, or later."""

from typing import NamedTuple


class Pace(NamedTuple):
    """How a parameter follows the learning rate."""

    factor: float = 1.0
    """Of the learning rate."""
    frozen_updates: int = 0
    """Updates at the beginning that leave it as it is."""

    def frozen(self, step: int) -> bool:
        """Whether it stays as it is at an update, counted from 1."""
        return step <= self.frozen_updates
