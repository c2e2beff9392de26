"""Evaluation parameters shared by all tasks, and the stage's inputs and outputs."""

import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, field_validator

from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.schema import Section
from transformer.encoded.store import EncodedColumn

COMMIT = re.compile(r"[0-9a-f]{7,40}")
"""A commit id, possibly abbreviated."""
Committed = Callable[[str, Path], str]
"""Reads a file under reports/TASK of a commit's result. Raises UserError when that is not available."""
_FILE = re.compile(r"[\w][\w.-]*\.tsv")


class ScoringParams(Section):
    """How predictions are scored: none of these parameters changes a prediction."""

    bootstrap_samples: int = Field(ge=0, le=1_000_000)
    """Resamples of the test items for every interval and p-value; 0 for neither."""
    baseline: str | None
    """The result to compare with: a commit's id, or a file in `data/local/baseline/TASK`; null for none."""

    @field_validator("baseline", mode="before")
    @classmethod
    def _is_no_number(cls, baseline: object) -> object:
        if isinstance(baseline, int | float):
            raise ValueError(
                f"to YAML, baseline is the number {baseline}: put the commit's id in quotes, or give more of it"
            )
        return baseline

    @field_validator("baseline")
    @classmethod
    def _means_the_same_for_ever(cls, baseline: str | None) -> str | None:
        if baseline is None or COMMIT.fullmatch(baseline) or _FILE.fullmatch(baseline):
            return baseline
        raise ValueError(
            "baseline must be a commit's id (`git rev-parse NAME` gives that of a branch or tag, which may move) or the"
            f" name of a .tsv file in data/local/baseline/, not {reprlib.repr(baseline)}"
        )


@dataclass(frozen=True, kw_only=True)
class EvaluationInputs:
    """Outputs of earlier stages, and the user's baselines."""

    corpus: Path
    tokens: Path
    vocab: Path
    encoded: Path
    trained: Path
    baselines: Path
    """Folder of prediction files to compare with."""
    committed: Committed
    """Reads a report of another commit's result."""


@dataclass(frozen=True, kw_only=True)
class EvaluationOutputs:
    """Outputs of the evaluate stage."""

    metrics: Path
    predictions: Path
    plots: Path
    """Numeric tables for DVC's plots."""
    tables: Path
    """Tables with corpus texts, for the report."""


def evaluated_splits(inputs: EvaluationInputs, column: str) -> list[str]:
    """Return validation, test and any further test splits of the corpus; column: of their encoded texts.

    Raises UserError if these belong to another corpus, as after `download` alone.
    """
    rows = read_json(inputs.corpus / "provenance.json")["rows"]
    found = [split for split in rows if split.startswith(("validation", "test"))]
    for split in found:
        if (encoded := len(EncodedColumn(inputs.encoded / split, column))) != rows[split]:
            raise UserError(f"{split} has {rows[split]:,} rows, and {encoded:,} encoded ones: run `dvc repro`")
    return sorted(found, key=lambda split: (not split.startswith("validation"), split))
