"""Entry point of all stage scripts: arguments, parameters, progress, live curves and error handling."""

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from transformer.core.code import code_at_start, updates_code
from transformer.core.errors import OUT_OF_MEMORY, UserError, is_out_of_memory, printable, unusable
from transformer.core.observer import Observer
from transformer.core.params import read_params, stage_params
from transformer.core.paths import Paths
from transformer.core.process import watched
from transformer.core.task import open_task, task_names
from transformer.core.unchanged import InputSnapshot, repository
from transformer.core.validation import Runtime
from transformer.workflow.pipeline import STAGES as MADE
from transformer.workflow.recording import Live
from transformer.workflow.results import note_times, read_committed, run_of

T = TypeVar("T")
PARAMS = Path("params.yaml")
_QUIET = 60.0  # seconds


class StageObserver(Observer):
    """Show progress on a terminal, and send training curves to MLflow (workflow/live.py)."""

    def __init__(self, task: str, stage: str, runtime: Runtime, training: str) -> None:
        """training: identifies the training run when it is resumed."""
        self._title = f"{stage}@{task}"
        self._shows = runtime.progress
        self._live = Live(task, f"{self._title} {training[:8]}", training) if runtime.tracking else None
        self.sent: list[dict[str, Any]] = []
        """All metric events so far."""
        self._clean_ups: list[Callable[[], None]] = []

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterable[T]:
        """Show a bar with rate and remaining time; without a terminal, a line after each of `_QUIET` seconds.

        The line's remaining time covers all the work, the bar's only this call.
        """
        if not self._shows:
            return items
        items = watched(items, self.say)
        if not sys.stderr.isatty():
            return self._log_progress(items, total, what, after)
        bar: Iterable[T] = tqdm(items, total=total, desc=f"{self._title}: {what}", leave=False, mininterval=0.5)
        return bar

    def _log_progress(self, items: Iterable[T], total: int | None, what: str, after: int) -> Iterator[T]:
        start = last = time.monotonic()
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - last > _QUIET:
                last, left = now, ""
                if total is not None and done:
                    minutes = (now - start) * (total - done + after) / done / 60
                    left = f" of {total:,}, about {minutes:.0f} min left"
                self.say(f"{what}: {done:,}{left}")
            yield item

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Send live metric points."""
        event = {"event": "metrics", "step": step, "time": int(time.time() * 1000), "values": dict(values)}
        self.sent.append(event)
        self._send(event)

    def memory(self) -> list[dict[str, Any]]:
        """Return all points so far, so that a resumed training has complete curves."""
        return self.sent

    def resume(self, step: int, memory: list[dict[str, Any]]) -> None:
        """Report the resume, and resend all points so far."""
        self.say(f"resuming after step {step}")
        self.sent = memory
        self._send({"event": "resumed"}, *memory)

    def _send(self, *events: dict[str, Any]) -> None:
        if self._live is not None:
            self._live.send(*events)

    def say(self, line: str) -> None:
        """Print a line below the progress bar."""
        tqdm.write(printable(f"{self._title}: {line}"), file=sys.stderr)

    def once_checked(self, clean_up: Callable[[], None]) -> None:
        """Defer the clean-up to `clean_up`."""
        self._clean_ups.append(clean_up)

    @property
    def can_go_on(self) -> bool:
        """True if a checkpoint is kept, so that an unchanged rerun only rewrites the results."""
        return bool(self._clean_ups)

    def clean_up(self) -> None:
        """Run the deferred clean-ups: the results are final."""
        for clean_up in self._clean_ups:
            clean_up()

    def end(self, status: str) -> None:
        """Record the stage's final status."""
        if self._live is not None:
            self._live.end(status)


def task_paths(task: str) -> Paths:
    """Return the files and folders of a task in the current folder."""
    here = Path.cwd()
    return Paths(
        data=Path("data", task),
        models=Path("models", task),
        reports=Path("reports", task),
        states=(repository(here) or here) / ".dvc" / "tmp" / "resume" / task,
        committed=read_committed,
    )


def main(name: str) -> None:
    """Run a stage script: `python -m stages.NAME TASK`.

    A UserError ends in one line and exit status 1, SIGTERM and Ctrl-C in one line and 130.
    """
    task = _task(name)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        _run(name, task)
    except UserError as error:
        sys.exit(f"error: {name}@{task}: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"error: {name}@{task}: {unusable(error)}")
    except KeyboardInterrupt as interrupt:
        _say_stopped(name, task, interrupt)
        sys.exit(130)


def _run(name: str, task: str) -> None:
    content, declared = read_params(PARAMS), open_task(task)
    code, paths, start = declared.family.stage(name), task_paths(task), time.time()
    schema = code.Params
    params = stage_params(content, task, schema, where=PARAMS)
    started = InputSnapshot(PARAMS, content, name, declared, schema)
    training = hashlib.sha256(f"{run_of(task, 'build_vocab')} {started.parameters}".encode()).hexdigest()
    if name == "train":
        paths = replace(paths, code=updates_code(code_at_start(), declared))
    if name == "train" and int(os.environ.get("RANK", "0")):  # torchrun's: only the first process records and writes
        code.run(declared, params, paths, Observer())
        return
    observer = StageObserver(task, name, params.runtime, training)
    if started.other_versions:
        observer.say(
            f"warning: {', '.join(started.other_versions)} of requirements.lock: install it, and run"
            f" `dvc repro --force --single-item {name}@{task}`, since DVC cannot tell this result from one under those"
        )
    try:
        metrics = code.run(declared, params, paths, observer)
        observer.say("  ".join(f"{name} {value:g}" for name, value in metrics.items()))
        started.record()
        _require_unchanged(started, observer)
    except KeyboardInterrupt as interrupt:
        _say_stopped(name, task, interrupt)
        with suppress(KeyboardInterrupt):  # a second one does not wait
            observer.end("KILLED")
        sys.exit(130)
    except BaseException as error:
        observer.end("FAILED")
        if is_out_of_memory(error):
            raise UserError(OUT_OF_MEMORY) from error
        raise
    observer.clean_up()
    observer.end("FINISHED")
    if name in MADE:
        with suppress(UserError):  # of a full disk: the outputs are written
            note_times(task, name, start, time.time(), observer.sent)


def _say_stopped(name: str, task: str, interrupt: KeyboardInterrupt) -> None:
    print(f"error: {name}@{task}: {str(interrupt) or 'stopped'}", file=sys.stderr)


def _require_unchanged(started: InputSnapshot, observer: StageObserver) -> None:
    kept = "; a checkpoint is kept, so reverting the change needs no retraining" if observer.can_go_on else ""
    started.require_unchanged(kept)


def _task(name: str) -> str:
    if len(sys.argv) == 2 and sys.argv[1] in task_names():
        return sys.argv[1]
    sys.exit(f"usage: python -m stages.{name} {'|'.join(task_names())}")


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt
