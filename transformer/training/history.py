"""What a training leaves as figures: one row an epoch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Row = dict[str, float]


class Monitor(NamedTuple):
    """The validation figure that decides which epoch is the best; of equal ones the lower loss decides."""

    name: str
    higher_is_better: bool = False

    def rank(self, row: Row) -> tuple[float, float]:
        """Sorts rows, the best first; what is not a number comes last."""
        figure, loss = row[self.name], row["validation_loss"]
        if math.isnan(figure) or math.isnan(loss):
            return math.inf, math.inf
        return (-figure if self.higher_is_better else figure), loss

    def better(self, new: Row, old: Row) -> bool:
        """Whether `new` is strictly better than `old`."""
        return self.rank(new) < self.rank(old)


MONITORS = {
    "loss": Monitor("validation_loss"),
    "accuracy": Monitor("validation_accuracy", higher_is_better=True),
}


@dataclass
class History:
    """Figures by epoch, and which epoch was the best."""

    rows: list[Row] = field(default_factory=list)
    best: int = -1
    """Index into `rows`."""

    def add(self, row: Row, better: Callable[[Row, Row], bool]) -> None:
        """Append an epoch's figures; better: whether the first row is better than the second."""
        self.rows.append(row)
        if self.best < 0 or better(row, self.best_row):
            self.best = len(self.rows) - 1

    @property
    def best_row(self) -> Row:
        """The figures of the best epoch."""
        return self.rows[self.best]

    def since_best(self) -> int:
        """Epochs since the best one."""
        return len(self.rows) - 1 - self.best

    def line(self, epochs: int) -> str:
        """What is said after an epoch, of so many."""
        best = "  (best)" if self.since_best() == 0 else ""
        row = self.rows[-1]
        return f"epoch {row['epoch']:.0f}/{epochs}  {in_words(row)}{best}"


def in_words(row: Row) -> str:
    """The losses and accuracies of an epoch."""
    return "  ".join(
        f"{name} {value:.4f}" for name, value in row.items() if name.endswith(("loss", "perplexity", "accuracy"))
    )
