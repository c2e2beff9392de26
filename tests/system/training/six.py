"""Six simultaneous training runs with one folder of states.

`python -m tests.system.training.six FOLDER` raises on failure.

They are separate processes, forked so that torch is imported only once.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.training.line import CPU, Line, params
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.training.batches import BatchLoss
from transformer.training.loop import fit
from transformer.training.resume import Resume, prune_others, saved_checkpoints

_SECONDS = 60


def wait_for(condition: Callable[[], bool]) -> None:
    """Raises TimeoutError after a minute."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > _SECONDS:
            raise TimeoutError
        time.sleep(0.005)


class Waiting(Line):
    """Causes a state to be saved, then waits for a file before it continues."""

    def __init__(self, go: Path) -> None:
        super().__init__()
        self.go = go

    def loss(self, rows: Ids) -> BatchLoss:
        if len(self.seen) == 3:
            wait_for(self.go.exists)
        return super().loss(rows)


def start(states: Path, number: int, go: Path) -> int:
    """Train in a separate process; returns its id."""
    if process := os.fork():
        return process
    status = 1
    try:
        with Resume(states / f"training{number}", 1e-6, Observer()) as resume:
            fit(Waiting(go), params(epochs=4), CPU, log_every=1, observer=Observer(), resume=resume)
            resume.finish()
        status = 0
    finally:
        os._exit(status)


def main(root: Path) -> None:
    """Six start and save, four more start and end, three are killed, the others end well."""
    states, go = root / "states", root / "go"
    (root / "now").touch()
    fit(Line(), params(epochs=1), CPU, log_every=1, observer=Observer())  # import once what each process would import
    folders = [states / f"training{number}" for number in range(6)]
    processes = [start(states, number, go) for number in range(6)]
    wait_for(lambda: all(saved_checkpoints(folder) for folder in folders))
    for number in range(6, 10):
        assert os.waitpid(start(states, number, root / "now"), 0)[1] == 0
    assert all(saved_checkpoints(folder) for folder in folders), "the states of a live training run were removed"
    for process in processes[:3]:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    prune_others(states / "another", 1)
    left = [folder for folder in folders if saved_checkpoints(folder)]
    assert len([folder for folder in left if folder in folders[:3]]) == 1, "dead runs beyond `keep` are removed"
    assert left[-3:] == folders[3:], "and no live ones"
    go.touch()
    assert [os.waitpid(process, 0)[1] for process in processes[3:]] == [0, 0, 0]
    assert sorted(path.name.partition(".")[0] for path in states.iterdir()) == [left[0].name] * 2, "its states and lock"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
