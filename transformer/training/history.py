"""What a training leaves as figures: one row an epoch."""

from dataclasses import dataclass, field


@dataclass
class History:
    """Figures by epoch, and which epoch was the best."""

    rows: list[dict[str, float]] = field(default_factory=list)
    best: int = -1
    """Index into `rows`."""

    @property
    def best_row(self) -> dict[str, float]:
        """The figures of the best epoch."""
        return self.rows[self.best]

    def since_best(self) -> int:
        """Epochs since the best one."""
        return len(self.rows) - 1 - self.best
