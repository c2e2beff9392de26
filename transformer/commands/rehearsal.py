"""Train on a part of a corpus for some seconds: check that its parameters work, and estimate the training time."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np

from transformer.core.files import read_json, read_rows, write_json, write_rows
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.paths import Paths
from transformer.core.task import Task, pass_on_labels
from transformer.data.store import EncodedColumn

_ROWS = 3000  # of each split
_WARM = 5  # updates before the clock starts
_SECONDS = 8.0


class _EnoughError(Exception):
    """Enough updates have been timed."""


class _Clock(Observer):
    """Times the updates."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, float]] = []

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Note the time; end training after enough updates."""
        self.steps.append((step, monotonic()))
        if len(self.steps) > _WARM and self.steps[-1][1] - self.steps[_WARM][1] > _SECONDS:
            raise _EnoughError

    def seconds(self) -> float:
        """Return the seconds per update."""
        timed = self.steps[_WARM:] if len(self.steps) > _WARM + 1 else self.steps
        (first, start), (last, end) = timed[0], timed[-1]
        return (end - start) / max(last - first, 1)


@dataclass(frozen=True)
class Rehearsal:
    """Results of a rehearsal."""

    rows: int
    """Training rows used."""
    seconds: float
    """Seconds per update."""
    cut: float
    """Share of those rows that exceed the model's maximum length."""

    def estimate(self, rows: int, train: Mapping[str, Any]) -> str:
        """Estimate the training time on this many rows, in one line; train: the section of parameters."""
        updates, epochs = math.ceil(rows / train["batch_size"]), train["epochs"]
        return (
            f"rehearsed on {self.rows:,} rows: an update takes {1000 * self.seconds:.0f} ms here, so {epochs} epochs of"
            f" {updates:,} updates, the most there may be, take about {_duration(epochs * updates * self.seconds)}"
        )


def rehearse(content: Mapping[str, Any], task: Task, corpus: Path, folder: Path) -> Rehearsal:
    """Run the stages after the download, up to some updates, on a part of the downloaded corpus.

    content: the parameters; folder: for the stages' outputs. Raises UserError if a stage does.
    """
    paths = Paths(data=folder / "data", models=folder / "models", reports=folder / "reports")
    rows = _write_part(corpus, paths.corpus)
    for stage in ("tokenize", "build_vocab"):
        run_stage(content, task, stage, paths, Observer())
    clock = _Clock()
    with suppress(_EnoughError):
        run_stage(content, task, "train", paths, clock)
    names = [path.name.partition(".")[0] for path in (paths.encoded / "train").glob("*.offsets.npy")]
    longest = np.max([EncodedColumn(paths.encoded / "train", name).lengths for name in names], axis=0)
    cut = float((longest > content[task.name]["model"]["max_length"]).mean())
    return Rehearsal(rows, clock.seconds(), cut)


def run_stage(content: Mapping[str, Any], task: Task, stage: str, paths: Paths, observer: Observer) -> None:
    """Run a stage in this process. Raises UserError."""
    runtime = content["runtime"] | {"workers": 0, "progress": False, "log_every": 1}
    code = task.family.stage(stage)
    params = stage_params({**content, "runtime": runtime}, task.name, code.Params, where=Path("params.yaml"))
    code.run(task, params, paths, observer)


def _write_part(corpus: Path, part: Path) -> int:
    """Write rows sampled evenly from each split, which may be sorted; return the number of training rows."""
    rows = {}
    for split, total in read_json(corpus / "provenance.json")["rows"].items():
        draw = Random(1)
        drawn = [row for row in read_rows(corpus / f"{split}.jsonl") if draw.random() < _ROWS / total]
        rows[split] = write_rows(part / f"{split}.jsonl", iter(drawn))
    write_json(part / "provenance.json", {"rows": rows})
    pass_on_labels(corpus, part)
    return rows["train"]


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
