"""Starts what writes to MLflow, in processes of its own that are given up when MLflow does not answer."""

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
"""Seconds of training after which its curves are live: a process for them takes 3 s, and a result's run has them."""
_LAST_SECONDS = 5.0
_MOST = 20_000  # events that wait; those beyond are dropped


def record_result(task: str, seconds: float) -> str:
    """Write the run of the task's result in the current folder; returns what to say about it.

    seconds: after which it is given up.
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
    """Sends the curves of a training that is under way (`live.py`), which never waits for it."""

    def __init__(self, task: str, name: str, training: str) -> None:
        """name: of the run; training: identifies it when it is resumed."""
        self._command = [sys.executable, "-m", "transformer.workflow.live", task, name, training]
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue(_MOST)
        self._started = time.monotonic()
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, *events: dict[str, Any]) -> None:
        """Queue events; those that find it full are dropped."""
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
        """Say how the training ended, and wait up to 5 s until that is recorded."""
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
