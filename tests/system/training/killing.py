"""Kills real training runs.

`python -m tests.system.training.killing TASK KILLS SEED` in a folder with the inputs of the stage.

Each attempt is a separate process that runs the stage as its script does, forked to import torch only once. So nothing
is imported here that the stage does not: it would fail.
Prints one JSON line: the number of kills, of training runs and of resumes, and the seconds of an undisturbed training
run.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

from transformer.core.task import open_task
from transformer.workflow import stage as workflow

_LOG = Path("log")
_STATES = Path(".dvc/tmp/resume")
_WRITTEN = ("models", "reports")
_LONGEST = 60.0


def start(task: str) -> int:
    """Run the stage `train` in a separate process; returns its id."""
    process = os.fork()
    if process:
        return process
    log = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 2)
    sys.argv = ["stages.train", task]
    code = 1
    try:
        workflow.main("train")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        os.write(2, f"{end.code}\n".encode())
    finally:
        os._exit(code)


def finished(process: int, until: Callable[[], bool], number: int) -> bool:
    """Wait until the process ends, or send it the signal as soon as `until` is true. True if it ended well before."""
    started = time.monotonic()
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert status == 0, f"training failed on its own: {_LOG.read_text()[-2000:]}"
            return True
        if until() or time.monotonic() - started > _LONGEST:
            os.kill(process, number)
            _, status = os.waitpid(process, 0)
            return status == 0  # it may have just ended
        time.sleep(0.0005)


def moment(chance: random.Random, longest: float, task: str, *, first: bool) -> Callable[[], bool]:
    """When to kill: after a random time, while a state is being written, or while the results are.

    The first kill waits for a state, so that at least one training run finds one.
    """
    if first:
        return lambda: any((_STATES / task).rglob("*.safetensors"))
    kind = chance.choices(("time", "save", "result"), weights=(6, 3, 1))[0]
    after = time.monotonic() + chance.uniform(0, longest)
    if kind == "time":
        return lambda: time.monotonic() > after
    if kind == "save":
        return lambda: time.monotonic() > after and any(Path(".dvc").rglob("*.part"))
    return lambda: any(Path("models").rglob("*"))


def outputs(root: str) -> dict[str, bytes]:
    """All files of a folder, by path."""
    return {path.as_posix(): path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}


def main() -> None:
    """Train undisturbed, then with kills, and compare the outputs with the undisturbed ones whenever a run ends."""
    task, kills, chance = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
    open_task(task).family.stage("train")
    started = time.monotonic()
    assert finished(start(task), lambda: False, signal.SIGKILL)
    longest = time.monotonic() - started
    expected = {root: outputs(root) for root in _WRITTEN}
    killed = trainings = 0
    ended = True
    while killed < kills or not ended:
        if ended:
            trainings += 1
            for root in _WRITTEN:
                rmtree(root)
        number = chance.choices((signal.SIGKILL, signal.SIGTERM, signal.SIGINT), weights=(6, 1, 1))[0]
        until = moment(chance, longest, task, first=not killed) if killed < kills else lambda: False
        ended = finished(start(task), until, number)
        killed += not ended
        if ended:
            assert {root: outputs(root) for root in _WRITTEN} == expected, "the bytes differ"
            assert not any((_STATES / task).rglob("*.safetensors")), "states are left"
            assert trainings < 10 + kills, "training runs end before they can be killed"
    taken = _LOG.read_text().count("resuming after step")
    print(json.dumps({"killed": killed, "trainings": trainings, "states_taken": taken, "seconds": round(longest, 2)}))


if __name__ == "__main__":
    main()
