"""Curves of a training that is under way: a run of their own, that a training never waits for."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT, free_port, until
from tests.system.tracking.faults import faulty
from transformer.workflow import recording
from transformer.workflow.mlflow import Store, open_store
from transformer.workflow.recording import Live


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LIVE_AFTER", 0.0)


@pytest.fixture
def live(store: Store) -> Iterator[Store]:
    """The experiment of live curves of a task."""
    yield open_store(Path.cwd(), "sentiment (live)")


def event(step: int, **values: float) -> dict[str, Any]:
    return {"event": "metrics", "step": step, "time": 1000 * step, "values": values or {"train_loss": 1 / step}}


def started(training: str = "one") -> Live:
    return Live("sentiment", f"train@sentiment {training}", training)


def runs(store: Store) -> list[tuple[str, list[int]]]:
    """Status and steps of the runs, oldest first."""
    found = sorted(store.runs(""), key=lambda run: run.info.start_time)
    history = store.client.get_metric_history
    return [(run.info.status, [point.step for point in history(run.info.run_id, "train_loss")]) for run in found]


def test_curves_are_there_while_a_training_goes_on_and_a_resumed_one_adds_to_them(live: Store) -> None:
    first = started()
    first.send(event(1), event(2))
    until(lambda: runs(live) == [("RUNNING", [1, 2])])
    first.send(event(3))
    until(lambda: runs(live) == [("RUNNING", [1, 2, 3])])
    assert first._process is not None
    first._process.kill()  # with the training
    first._process.wait()
    again = started()
    again.send({"event": "resumed"}, event(1), event(2))
    again.send(event(3), event(4))
    until(lambda: runs(live)[0][1] == [1, 2, 3, 4])
    again.end("FINISHED")
    assert runs(live) == [("FINISHED", [1, 2, 3, 4])]
    assert open_store(Path.cwd(), "sentiment").runs("") == [], "results stand alone"
    other = started("two")
    other.send(event(1))
    until(lambda: len(runs(live)) == 2)
    other.end("KILLED")
    assert runs(live)[1] == ("KILLED", [1])


@pytest.mark.parametrize("fault", ["down", "error", "drip", "silent"])
def test_a_store_that_fails_holds_no_training_up(fault: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nullcontext(f"http://127.0.0.1:{free_port()}") if fault == "down" else faulty(fault) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        training = started()
        training.send(event(1))
        for step in range(2, 2000):
            before = time.monotonic()
            training.send(event(step))
            assert time.monotonic() - before < 1
        before = time.monotonic()
        training.end("FINISHED")
        assert time.monotonic() - before < 10


def test_an_error_is_one_line(root: Path) -> None:
    """Of the process that writes them."""
    command = [sys.executable, "-m", "transformer.workflow.live", "sentiment", "name", "training"]
    lines = b'{"event": "metrics", "step": 1, "time": 1, "values": {"a": 1}}\n'
    env = {"MLFLOW_TRACKING_URI": f"http://user:hunter2@127.0.0.1:{free_port()}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=lines, env=env, capture_output=True, check=False)
    said = done.stderr.decode()
    assert said.startswith("no live curves: ") and said.endswith("; the result's run will have them\n")
    assert said.count("\n") == 1 and "hunter2" not in said
