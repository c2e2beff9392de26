"""Resume an interrupted training: the result is byte-identical to that of an uninterrupted one.

Ctrl-C and SIGTERM wait until the update is done: between two updates a state can be saved, within one it cannot.
"""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from transformer.checkpoint.device import Compute
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.training.identity import training_key
from transformer.training.living import living, prune_others
from transformer.training.states import BrokenStateError, Tree, read_state, saved_states, write_state

_GENERATIONS = 2
_OTHERS = 3
"""Interrupted trainings beside this one whose states stay, and those of living ones: each has 2 files at most."""
_PAUSE = 40
"""After a save no other for so many times as long as it took: however slow the disk, it costs at most 2.5 %."""


class Resume:
    """Saves a training's state now and then, gives it back, and stops for Ctrl-C or SIGTERM only after saving.

    A context: inside it, signals wait for `checkpoint`. A state that cannot be written is a warning: training goes on.
    Two processes with the same folder do no harm: any state in it is a state of the same training.
    """

    def __init__(self, folder: Path | None, every: float, observer: Observer) -> None:
        """folder: for this training's states alone, beside those of others; every: seconds between two saves.

        Without a folder, or with 0 seconds, nothing is saved or taken, and signals are left alone.
        """
        self._folder = folder if every else None
        self._every, self._observer = every, observer
        self._stack = ExitStack()
        self._interrupted: Callable[[], bool] = lambda: False
        self._due = time.monotonic() + every
        self._failing = False
        self.seconds = 0.0
        """What saving took."""

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._interrupted = self._stack.enter_context(interrupts_held_back())
            try:
                self._stack.enter_context(living(self._folder))
                prune_others(self._folder, _OTHERS)
            except UserError as error:
                self._observer.say(f"warning: {error}; another training may remove the states of this one")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def load(self) -> Tree | None:
        """The newest whole state, if there is one; what is broken is said."""
        for path in saved_states(self._folder) if self._folder is not None else ():
            try:
                return read_state(path)
            except BrokenStateError as error:
                self._observer.say(f"warning: {error}: the state before it is taken, or none")
        return None

    def newest(self) -> str:
        """Where the newest saved state is, in words."""
        states = saved_states(self._folder) if self._folder is not None else []
        return str(states[0]) if states else "none"

    def checkpoint(self, step: int, state: Callable[[], Tree]) -> None:
        """Between two updates: save if it is time, or if a signal waits; then raise KeyboardInterrupt."""
        interrupted = self._interrupted()
        if self._folder is not None and (interrupted or time.monotonic() >= self._due):
            self._save(self._folder, state)
        if interrupted:
            where = "its state could not be saved" if self._failing else "run it again to go on from there"
            raise KeyboardInterrupt(f"stopped after step {step}; {where}")

    def last(self, state: Callable[[], Tree]) -> None:
        """The training is over: save it whatever the time, so that its results can be written again for nothing."""
        if self._folder is not None:
            self._save(self._folder, state)

    def _save(self, folder: Path, state: Callable[[], Tree]) -> None:
        started = time.monotonic()
        content = state()
        try:
            write_state(folder, content)
            for old in saved_states(folder)[_GENERATIONS:]:
                old.unlink(missing_ok=True)
            self._failing = False
        except UserError as error:
            if not self._failing:
                self._observer.say(f"warning: no state saved, training goes on: {error}")
            self._failing = True
        now = time.monotonic()
        self.seconds += now - started
        self._due = now + max(self._every, _PAUSE * (now - started))

    def finish(self) -> None:
        """The training's outputs are written: its states go as soon as those stand. A signal that waits comes first."""
        if self._interrupted():
            raise KeyboardInterrupt("stopped; run it again to go on from there")
        if (folder := self._folder) is not None:
            self._observer.once_checked(lambda: shutil.rmtree(folder, ignore_errors=True))


def resumable(
    states: Path | None, params: StageParams, compute: Compute, inputs: Sequence[Path], observer: Observer
) -> Resume:
    """The states of the training with these parameters and inputs, in a folder of its own in `states`."""
    every = params.runtime.save_every
    folder = states / training_key(params, compute, inputs) if states is not None and every else None
    return Resume(folder, every, observer)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], bool]]:
    """While the block runs, the first Ctrl-C or SIGTERM is only noted; yields what says whether one came.

    The second one raises KeyboardInterrupt at once. Outside the main thread, where Python lets nobody handle signals,
    none is noted.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if len(noted) > 1:
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield lambda: bool(noted)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
