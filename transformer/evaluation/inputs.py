"""What the evaluate stages of all tasks read and write."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class EvaluationInputs:
    """What the earlier stages wrote."""

    corpus: Path
    tokens: Path
    vocab: Path
    encoded: Path
    trained: Path


@dataclass(frozen=True, kw_only=True)
class EvaluationOutputs:
    """What evaluate writes."""

    metrics: Path
    predictions: Path
    plots: Path
