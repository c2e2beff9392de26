"""Predictions of another result for comparison: from a commit, through DVC, or from a local file."""

import json
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator

from transformer.core.errors import UserError
from transformer.core.files import read_json, table_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.validation import Section
from transformer.data.store import EncodedColumn

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


def evaluated_splits(paths: Paths, column: str) -> list[str]:
    """Return validation, test and any further test splits of the corpus; column: of their encoded texts.

    Raises UserError if these belong to another corpus, as after `download` alone.
    """
    rows = read_json(paths.corpus / "provenance.json")["rows"]
    found = [split for split in rows if split.startswith(("validation", "test"))]
    for split in found:
        if (encoded := len(EncodedColumn(paths.encoded / split, column))) != rows[split]:
            raise UserError(f"{split} has {rows[split]:,} rows, and {encoded:,} encoded ones: run `dvc repro`")
    return sorted(found, key=lambda split: (not split.startswith("validation"), split))


Row = dict[str, str]
_REMEDY = "name another in `evaluate.baseline`, or null for none"


@dataclass(frozen=True)
class Baseline:
    """The rows of another result's predictions.tsv."""

    name: str
    """Commit id or file path, for messages."""
    rows: dict[str, list[Row]]
    """Rows by split."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    """Signatures of a commit's metrics, by name; unknown for a file."""

    @classmethod
    def read(cls, baseline: str, folder: Path, predictions: Path, columns: Sequence[str], committed: Committed) -> Self:
        """baseline: a commit's id or the name of a file in `folder`; predictions: the path of the file in a commit.

        columns: required in every row, besides `split`. Raises UserError when the table is missing or invalid.
        """
        signatures: dict[str, str] = {}
        if COMMIT.fullmatch(baseline):
            name, lines = f"commit {baseline}", committed(baseline, predictions).split("\n")
            signatures = json.loads(committed(baseline, predictions.with_name("evaluation.json")))["signatures"]
        else:
            name, lines = str(folder / baseline), _of_file(folder / baseline)
        rows: dict[str, list[Row]] = {}
        for row in table_rows(lines):
            missing = [column for column in ("split", *columns) if column not in row]
            if missing:
                raise UserError(f"{name} has a row without column `{missing[0]}`: {_REMEDY}")
            rows.setdefault(row["split"], []).append(row)
        if not rows:
            raise UserError(f"{name} has no rows: {_REMEDY}")
        return cls(name, rows, signatures)

    def measured_alike(self, signatures: Mapping[str, str]) -> set[str]:
        """Return the metrics with these signatures that the baseline's signatures do not contradict."""
        return {name for name, own in signatures.items() if self.signatures.get(name, own) == own}

    def of_split(self, split: str, expected: Mapping[str, Sequence[str]], observer: Observer) -> list[Row] | None:
        """Return the rows of a split, checked to be for the same texts in the same order; None if there are none.

        expected: the contents of columns, which are checked if the baseline has them. Raises UserError when they
        differ.
        """
        if split not in self.rows:
            observer.say(f"{self.name} has no predictions for {split}: nothing to compare")
            return None
        rows = self.rows[split]
        for column, given in expected.items():
            texts = [_spaced(text) for text in given]
            if len(rows) != len(texts):
                raise UserError(f"{self.name} has {len(rows):,} predictions for {split}, not {len(texts):,}: {_REMEDY}")
            for number, (row, text) in enumerate(zip(rows, texts, strict=True), start=1):
                if column in rows[0] and _spaced(row.get(column, "")) != text:
                    raise UserError(
                        f"{self.name} is for other data: the {column} of row {number} of {split} is not {text[:60]!r};"
                        f" {_REMEDY}"
                    )
        return rows


def _spaced(text: str) -> str:
    """Return the text as stored in a table: without tabs and line ends."""
    return " ".join(text.split())


def _of_file(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError as error:
        raise UserError(f"there is no {path}: put the predictions there, or {_REMEDY}") from error
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path} cannot be read ({error}): {_REMEDY}") from error
