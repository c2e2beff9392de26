"""What the figures stages of all tasks read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transformer.core.files import read_rows, read_table
from transformer.figures.config import FiguresParams

_FIRST = 3  # validation texts where none is chosen


@dataclass(frozen=True, kw_only=True)
class FigureInputs:
    """What the earlier stages wrote."""

    corpus: Path
    tokens: Path
    vocab: Path
    trained: Path
    history: Path

    def sentences(self, params: FiguresParams, column: str) -> Sequence[str]:
        """The chosen raw texts, or the first of the validation split; column: theirs in the corpus."""
        rows = islice(read_rows(self.corpus / "validation.jsonl"), _FIRST)
        return params.sentences or [row[column] for row in rows]

    def updates_an_epoch(self) -> int:
        """Optimizer steps in the first epoch of the training."""
        return int(float(next(read_table(self.history))["step"]))
