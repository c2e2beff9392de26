"""The curves of a training that is under way, in an experiment of their own: `TASK (live)`.

A training hands them to a process, `python -m transformer.workflow.live TASK NAME TRAINING`, as JSON lines on its
standard input, and never waits for it. Only a training that has run for a minute starts one: it takes 3 s of CPU time,
and the run of a result has all curves.
"""

import json
import queue
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

FIRST_SECONDS = 60.0
_LAST_SECONDS = 5.0
_MOST = 20_000  # events that wait; those beyond are dropped
_READ = 1 << 16
Event = dict[str, Any]


class Live:
    """What a training sends: metric events, and at last how it ended."""

    def __init__(self, task: str, name: str, training: str) -> None:
        """name: of the run; training: identifies it when it is resumed."""
        self._command = [sys.executable, "-m", "transformer.workflow.live", task, name, training]
        self._events: queue.Queue[Event | None] = queue.Queue(_MOST)
        self._started = time.monotonic()
        self._thread: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, *events: Event) -> None:
        """Queue events; those that find it full are dropped."""
        with suppress(queue.Full):
            for event in events:
                self._events.put_nowait(event)
        if self._thread is None and time.monotonic() - self._started >= FIRST_SECONDS:
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


def batches(stream: Any) -> Iterator[list[Event]]:
    """The events that are there, as soon as there are some, until the stream ends."""
    rest = b""
    while some := stream.read1(_READ):
        *lines, rest = (rest + some).split(b"\n")
        if lines:
            yield [json.loads(line) for line in lines]


def main(task: str, name: str, training: str, events: Iterable[list[Event]]) -> None:
    """Log what a training sends; an error ends in one line."""
    from transformer.workflow.mlflow import follow, in_words, open_store

    try:
        follow(open_store(Path.cwd(), f"{task} (live)"), name, training, iter(events))
    except Exception as error:  # the boundary: what MLflow, its database and the connection raise
        sys.exit(f"no live curves: {in_words(error)}; the result's run will have them")


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training says how it ended
    main(sys.argv[1], sys.argv[2], sys.argv[3], batches(sys.stdin.buffer))
