"""A training run that takes turns with others, a few updates each: whatever slows the machine slows all of them.

`python benchmarks/turns.py ROOT TASK UPDATES CODE HARDWARE` runs our real loop, as the train stage does, on the encoded
store in ROOT, with the package in the folder CODE, which may be from an older commit, and with the section `hardware`
in place of that in ROOT/params.yaml. It waits for a line before each turn
and replies with the turn's seconds, or with `-` if the turn included validation.
"""

import importlib
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

BLOCK = 5
"""Updates per turn."""


class Turns:
    """A clock that stops while other runs have their turn."""

    def __init__(self, blocks: int) -> None:
        """blocks: number of turns."""
        self._left, self._waited, self._since = blocks, 0.0, 0.0

    def begin(self) -> None:
        """Wait for the first turn."""
        self._wait()

    def end(self, *, whole: bool = True) -> None:
        """Reply, and wait for the next turn; exits after the last. whole: the turn consisted of updates only."""
        print(f"{self.now() - self._since:.6f}" if whole else "-", flush=True)
        self._left -= 1
        if not self._left:
            sys.exit()
        self._wait()

    def now(self) -> float:
        """Seconds, excluding the turns of others."""
        return time.monotonic() - self._waited

    def _wait(self) -> None:
        stopped = time.monotonic()
        if not sys.stdin.readline():
            sys.exit()
        self._waited += time.monotonic() - stopped
        self._since = self.now()


def main(root: Path, task: str, updates: int, code: Path, hardware: str) -> None:
    """Train as the stage does; hardware: as JSON."""
    # Older commits have a different layout. Look at the files: with an editable install of this package, its import
    # hook would find `transformer.core` for every other copy of the package too.
    core = "transformer.core" if (code / "transformer" / "core").is_dir() else ""
    observer = importlib.import_module(f"{core or 'transformer'}.observer")
    loading = importlib.import_module("transformer.core.params" if core else "transformer.params.load")
    loop = importlib.import_module("transformer.training.loop")
    training = importlib.import_module("transformer.training.stage")

    turns = Turns(updates // BLOCK)
    # Memory is trimmed once per minute of this run's own time.
    vars(loop)["time"] = SimpleNamespace(monotonic=turns.now, perf_counter=turns.now)

    class TakingTurns(observer.Observer):  # type: ignore[misc,name-defined]
        whole = False

        def metrics(self, step: int, values: Mapping[str, float]) -> None:
            if "train_loss" not in values:  # the end of an epoch
                self.whole = False
                return
            if step == BLOCK:  # the first updates are the warm-up
                turns.begin()
            elif step % BLOCK == 0:
                turns.end(whole=self.whole)
            self.whole = True

    stage: Any
    if core:
        tasks = importlib.import_module("transformer.core.task")
        stage = tasks.stage_code(tasks.open_task(task), "train")
        run = partial(stage.run, tasks.open_task(task))
    else:
        stage = importlib.import_module(f"transformer.tasks.{task}.train")
        run = stage.run
    content = loading.read_params(root / "params.yaml") | {"hardware": json.loads(hardware)}
    content = _known(content, stage.Params, others=True)
    content[task] = _known(content[task], stage.Params, others=True)
    params = loading.stage_params(content, task, stage.Params, where=root / "params.yaml")
    runtime = params.runtime.model_copy(update={"log_every": BLOCK})
    train = params.train.model_copy(update={"epochs": 1_000, "patience": None})
    data, out = root / "data" / task, Path(tempfile.mkdtemp())
    paths = training.TrainingPaths(
        encoded=data / "encoded",
        vocab=data / "vocab",
        trained=out / "trained",
        metrics=out / "metrics.json",
        history=out / "history.tsv",
    )
    run(params.model_copy(update={"runtime": runtime, "train": train}), paths=paths, observer=TakingTurns())


def _known(values: Any, kind: Any, *, others: bool = False) -> Any:
    """The values that a section has a leaf for, as an older one has fewer; others: also the sections it lacks."""
    inner = [part for each in get_args(kind) for part in (each, *get_args(each))]
    kinds = [each for each in (kind, *inner) if hasattr(each, "model_fields")]
    if not kinds or not isinstance(values, dict):
        return values
    fields = {name: field.annotation for each in kinds for name, field in each.model_fields.items()}
    return {
        name: _known(value, fields[name]) if name in fields else value
        for name, value in values.items()
        if name in fields or others
    }


if __name__ == "__main__":
    sys.path[0] = sys.argv[4]
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
