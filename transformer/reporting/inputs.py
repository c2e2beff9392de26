"""Parameters and inputs of the figures stage, shared by all tasks."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from transformer.core.files import read_json, read_rows, read_table
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Section


class FiguresParams(Section):
    """`figures` of a task."""

    sentences: list[str] | None = Field(max_length=20)
    """Raw texts whose attention is drawn; null takes the sample corpus's examples, or the first 3 of validation of any
    other corpus, as does []."""
    layers: Literal["last", "all"]
    """The layers whose heads are drawn."""

    @field_validator("sentences")
    @classmethod
    def _no_empty_text(cls, sentences: list[str] | None) -> list[str] | None:
        if not all(sentence.strip() for sentence in sentences or ()):
            raise ValueError("a sentence is empty: write one, or take its line out")
        return sentences


_FIRST = 3  # validation texts by default


def sentences(task: Task, params: FiguresParams, paths: Paths, column: str) -> Sequence[str]:
    """Return the chosen raw texts, the examples or the first of validation; column: their column in the corpus."""
    of_sample = read_json(paths.corpus / "provenance.json")["source"] == "sample"
    if params.sentences is None and of_sample and column in task.examples:
        return task.examples[column]
    rows = islice(read_rows(paths.corpus / "validation.jsonl"), _FIRST)
    return params.sentences or [row[column] for row in rows]


def updates(history: Path, epochs: int) -> int:
    """Estimate the updates of the whole training; after early stopping, extrapolate from the last epoch."""
    steps = [0, *(int(float(row["step"])) for row in read_table(history))]
    return steps[-1] + (epochs + 1 - len(steps)) * (steps[-1] - steps[-2])
