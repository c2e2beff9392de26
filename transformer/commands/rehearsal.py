"""Runs the first stages and some updates on a part of a corpus: shows that its parameters work, and what they cost."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import NOWHERE, Task, stage_code
from transformer.corpora.corpus import Corpus
from transformer.corpora.select import NEAR

_ROWS = 3000
_LABEL, _FEWEST = "label", 30
_WARM = 5  # updates before the clock starts
_SECONDS = 8.0


class _EnoughError(Exception):
    """The updates have been timed."""


class _Clock(Observer):
    """Times the updates."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, float]] = []

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Note the time; ends training after enough updates."""
        self.steps.append((step, monotonic()))
        if len(self.steps) > _WARM and self.steps[-1][1] - self.steps[_WARM][1] > _SECONDS:
            raise _EnoughError

    def seconds(self) -> float:
        """Of one update."""
        timed = self.steps[_WARM:] if len(self.steps) > _WARM + 1 else self.steps
        (first, start), (last, end) = timed[0], timed[-1]
        return (end - start) / max(last - first, 1)


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal showed."""

    rows: int
    """Of train, that it trained on."""
    kept: int
    """Of train, all of which `download` read."""
    alike: int
    """That it left out since they nearly equal a held-out one."""
    cut: float
    """The share of those rows that are longer than the model's positions."""
    seconds: float
    """Of one update."""

    @property
    def share_alike(self) -> float:
        """The share of train that nearly equals a held-out row."""
        return self.alike / max(self.kept + self.alike, 1)

    def told(self, train: Mapping[str, Any]) -> str:
        """One line with the time that training takes; train: the section of parameters."""
        updates, epochs = math.ceil(self.kept / train["batch_size"]), train["epochs"]
        return (
            f"rehearsed on {self.rows:,} rows: an update takes {1000 * self.seconds:.0f} ms here, so {epochs} epochs of"
            f" {updates:,} updates, the most there may be, take about {_duration(epochs * updates * self.seconds)}"
        )


def rehearse(
    content: dict[str, Any], task: Task, corpus: Corpus, columns: Mapping[str, str], rows: Mapping[str, int]
) -> Rehearsal:
    """Download all, as the profile will, then run the other stages up to some updates on a part of it.

    content: the parameters; rows: those of each split. Raises UserError where a stage does.
    """
    content = deepcopy(content)
    content["runtime"] |= {"workers": 0, "progress": False, "log_every": 1}
    with TemporaryDirectory() as place:
        folder = Path(place)
        whole = _downloaded(content, task, folder / "whole")
        shutil.rmtree(folder / "whole")
        given = _part(corpus, folder / "given", columns, rows)
        content[task.name]["download"] |= {"path": str(folder / "given"), "columns": {}, "bad_rows": "skip"}
        content[task.name]["download"]["added"] = NOWHERE.as_posix()
        clock = _Clock()
        encoded = folder / "encoded"
        with suppress(_EnoughError):
            _run(content, task, folder, encoded, clock)
        cut = _share_cut(encoded / "train", content[task.name]["model"]["max_length"])
    alike = whole.get("left_out", {}).get("train", {}).get(NEAR, 0)
    return Rehearsal(given, whole["rows"]["train"], alike, cut, clock.seconds())


def _downloaded(content: dict[str, Any], task: Task, corpus: Path) -> Mapping[str, Any]:
    """Write the corpus to the folder `corpus`; returns its provenance. A sample of it would hold fewer duplicates."""
    _run_stage(content, task, "download", output=corpus, observer=Observer())
    provenance: Mapping[str, Any] = read_json(corpus / "provenance.json")
    return provenance


def _run_stage(content: dict[str, Any], task: Task, stage: str, **paths: Any) -> None:
    code = stage_code(task, stage)
    params = stage_params(content, task.name, code.Params, where=Path("params.yaml"))
    code.run(task, params, **paths)  # type: ignore[attr-defined]


def _part(corpus: Corpus, folder: Path, columns: Mapping[str, str], counts: Mapping[str, int]) -> int:
    """Write rows from all over each split, which may be sorted or by turns, as JSON lines; returns those of train.

    Of each label at least the first _FEWEST, so that a rare one has enough to be held out.
    """
    folder.mkdir()
    count = 0
    for split, parts in corpus.splits.items():
        draw, share = Random(1), _ROWS / max(counts[split], 1)
        read = (row for part in parts for row in part.read() if isinstance(row, dict))
        rows = (row for row in read if not any(row.get(name) in (None, "") for name in columns))
        seen: Counter[str] = Counter()
        lines = []
        for row in rows:
            label = str(row.get(_LABEL))
            if draw.random() < share or (_LABEL in columns and seen[label] < _FEWEST):
                seen[label] += 1
                lines.append(json.dumps({name: row.get(name) for name in columns}, default=str))
        (folder / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        count = len(lines) if split == "train" else count
    return count


def _share_cut(encoded: Path, longest: int) -> float:
    import numpy as np

    from transformer.encoded.store import EncodedColumn

    names = [path.name.partition(".")[0] for path in encoded.glob("*.offsets.npy")]
    lengths = [EncodedColumn(encoded, name).lengths for name in names]
    return float((np.max(lengths, axis=0) > longest).mean())


def _run(content: dict[str, Any], task: Task, folder: Path, encoded: Path, clock: _Clock) -> None:
    from transformer.training.stage import TrainingPaths

    corpus, tokens, vocab = (folder / name for name in ("corpus", "tokens", "vocab"))
    run = partial(_run_stage, content, task)
    _downloaded(content, task, corpus)
    run("tokenize", corpus=corpus, tokens=tokens, observer=Observer())
    statistics = folder / "vocabulary.json"
    run("build_vocab", tokens=tokens, vocab=vocab, encoded=encoded, statistics=statistics, observer=Observer())
    trained, metrics, history, updates = (folder / name for name in ("trained", "metrics", "history", "updates"))
    paths = TrainingPaths(
        encoded=encoded, vocab=vocab, trained=trained, metrics=metrics, history=history, updates=updates
    )
    run("train", paths=paths, observer=clock)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
