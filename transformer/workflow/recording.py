"""Start writers to MLflow as subprocesses that are given up when MLflow does not respond."""

import json
import os
import queue
import subprocess
import sys
import time
from contextlib import suppress
from subprocess import PIPE, STDOUT
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

LIVE_AFTER = 60.0
"""Seconds of training before its curves are live: starting a process takes 3 s, and the final run has the curves
anyway."""
_LAST_SECONDS = 5.0
_MOST = 20_000  # events that wait; those beyond are dropped


def record_result(task: str, seconds: float) -> str:
    """Write the run of the task's result in the current folder; return a status message.

    seconds: timeout.
    """
    command = [sys.executable, "-m", "transformer.workflow.sync", task]
    with TemporaryDirectory(prefix="run-") as place:  # what it leaves there when it is killed goes as well
        env = {**os.environ, "TMPDIR": place}
        try:
            done = subprocess.run(command, stdout=PIPE, stderr=STDOUT, text=True, timeout=seconds, env=env, check=False)
        except subprocess.TimeoutExpired:
            return f"MLflow has not taken the run in {seconds:g} s: `transformer sync` writes it later"
    more = "" if done.returncode == 0 else "; `transformer sync` writes the run later"
    return f"{' '.join(done.stdout.split())}{more}"


class Live:
    """Send the curves of a running training (`live.py`), without ever blocking it."""

    def __init__(self, task: str, name: str, training: str) -> None:
        """name: the run's name; training: identifies the training run when it is resumed."""
        self._command = [sys.executable, "-m", "transformer.workflow.live", task, name, training]
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue(_MOST)
        self._started = time.monotonic()
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, *events: dict[str, Any]) -> None:
        """Queue events; drop those that do not fit."""
        with suppress(queue.Full):
            for event in events:
                self._events.put_nowait(event)
        if self._thread is None and time.monotonic() - self._started >= LIVE_AFTER:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE)
            self._thread = Thread(target=self._write, args=(self._process,), daemon=True)
            self._thread.start()

    def _write(self, process: "subprocess.Popen[bytes]") -> None:
        with suppress(OSError):  # it has ended: it says why
            assert process.stdin is not None
            while (event := self._events.get()) is not None:
                process.stdin.write(f"{json.dumps(event)}\n".encode())
                process.stdin.flush()
            process.stdin.close()

    def end(self, status: str) -> None:
        """Report the final status, and wait up to 5 s until it is recorded."""
        if self._process is None:
            return
        with suppress(queue.Full):
            self._events.put_nowait({"event": "end", "status": status})
            self._events.put_nowait(None)
        try:
            self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
