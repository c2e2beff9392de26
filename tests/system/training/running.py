"""The training stage in processes of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML

from tests.kit import ROOT
from tests.training.small import outputs, prepare, smoke

SAMPLE: dict[str, Any] = {"download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}}}


def written(folder: Path, task: str = "sentiment", changes: dict[str, Any] | None = None, **runtime: Any) -> str:
    """Write the inputs of a training of two epochs in four shards; returns the task."""
    changes = changes or {"train": {}}
    training = {"shards": 4, "patience": None, "epochs": 2} | changes["train"]
    content = smoke(task, SAMPLE | changes | {"train": training})
    content["runtime"] |= {"tracking": False, "progress": False} | runtime
    prepare(content, task, folder / "data" / task)
    YAML().dump(content, folder / "params.yaml")
    return task


@contextmanager
def running(folder: Path, *command: str) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        yield process
        for each in psutil.pids():
            if psutil.pid_exists(each) and os.getsid(each) == process.pid and each != process.pid:
                os.kill(each, signal.SIGKILL)


def trained(folder: Path, task: str) -> dict[str, bytes]:
    with running(folder, sys.executable, "-m", "stages.train", task) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return outputs(folder / "models") | outputs(folder / "reports")


def change(folder: Path, **runtime: Any) -> None:
    content = YAML(typ="safe").load(folder / "params.yaml")
    content["runtime"] |= runtime
    YAML().dump(content, folder / "params.yaml")


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
