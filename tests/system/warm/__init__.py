"""Processes that start fast because they are forked from one that has imported torch, MLflow and DVC.

`with_warm_commands` puts its own `python`, `dvc` and `transformer` first on an environment's PATH; these ask a server
(server.py) to fork. The forked process gets the caller's arguments, environment, working directory and open files, and
imports the project's own code itself: the server has imported only libraries. A program that is named by its path, such
as `sys.executable`, is a real process; so is any command if the server is gone.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from transformer.core.portable import PINS
from transformer.workflow.mlflow import _SETTINGS

FOLDER, OWNER = "TESTS_WARM_FOLDER", "TESTS_WARM_OWNER"
"""Environment variables with the server's folder, and with the process that it ends with."""
_HERE = Path(__file__).parent
_COMMANDS = ("python", "dvc", "transformer")
_SECONDS = 60


def with_warm_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with warm commands first on PATH, inside pytest; starts the session's server once."""
    if FOLDER not in os.environ:
        return dict(environment)
    folder = Path(os.environ[FOLDER])
    with FileLock(folder / "lock"):
        if not (folder / "bin").exists():
            _start(folder, folder / "bin")
    # Without LD_PRELOAD: the stage `train` would restart itself.
    return {**environment, "PATH": f"{folder / 'bin'}{os.pathsep}{environment['PATH']}", "LD_PRELOAD": ""}


def _start(folder: Path, commands: Path) -> None:
    commands.mkdir()
    python, socket = Path(sys.executable), folder / "socket"
    for name in _COMMANDS:
        program = python if name == "python" else python.with_name(name)
        client = f'exec "{python}" -I -S "{_HERE / "client.py"}" "{socket}" {name} "{program}" "$@"'
        (commands / name).write_text(f"#!/bin/sh\n{client}\n")
        (commands / name).chmod(0o755)
    own = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "OMP_NUM_THREADS": "1", **_SETTINGS, **PINS}
    with (folder / "log").open("wb") as log:
        subprocess.Popen(
            (python, "-I", _HERE / "server.py", socket, commands / "python", os.environ[OWNER]),
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    due = time.monotonic() + _SECONDS
    while not socket.exists():
        assert time.monotonic() < due, (folder / "log").read_text()
        time.sleep(0.05)
