"""Resume an interrupted run; the result is byte-identical to that of an uninterrupted one.

Ctrl-C and SIGTERM wait until the current update is done: a checkpoint can only be written between updates.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.files import atomic_write, sha256
from transformer.core.observer import Observer
from transformer.training.distributed import rank

_LOCK = ".lock"


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Protect this run's checkpoints from pruning while the block runs. Processes with the same folder share the lock.

    Raises UserError when the lock cannot be taken.
    """
    try:
        descriptor = _locked(folder, fcntl.LOCK_SH)
    except OSError as error:
        raise UserError(f"cannot lock {_lock_of(folder)}: {error.strerror or error}") from error
    try:
        yield
    finally:
        os.close(descriptor)
        _remove_lock(folder)


def prune_others(folder: Path, keep: int) -> None:
    """Remove sibling checkpoint folders, except those of active runs and the `keep` most recent of the others."""
    others: list[tuple[float, Path]] = []
    for path in folder.parent.glob("*"):
        with suppress(OSError):  # a run that ends removes its folder
            if path != folder and path.is_dir() and not _is_locked(path):
                others.append((path.stat().st_mtime, path))
    for _, old in sorted(others, reverse=True)[keep:]:
        with suppress(OSError):
            descriptor = _locked(old, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it may have been resumed in the meantime
            try:
                shutil.rmtree(old, ignore_errors=True)
                _lock_of(old).unlink(missing_ok=True)
            finally:
                os.close(descriptor)
    for lock in folder.parent.glob(f"*{_LOCK}"):
        if not (states := lock.with_name(lock.name.removesuffix(_LOCK))).exists() and states != folder:
            _remove_lock(states)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)


def _is_locked(folder: Path) -> bool:
    try:
        descriptor = os.open(_lock_of(folder), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locked(folder: Path, kind: int) -> int:
    """Lock the folder's lock file, creating it if needed; return its descriptor. Raises OSError."""
    path = _lock_of(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, kind)
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another process removed the file before we locked it: later ones would not see our lock


def _remove_lock(folder: Path) -> None:
    """Remove the lock file unless another process holds it; one left by a killed process has no holder."""
    with suppress(OSError):
        descriptor = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _lock_of(folder).unlink(missing_ok=True)
        os.close(descriptor)


Tree = Any
"""Nested mappings with string keys, lists, numbers, strings, None and tensors."""

_SUFFIX = ".safetensors"
_REST = "rest"
_TENSOR = "\0tensor"
"""Key of the placeholder for a tensor; it cannot occur in a parameter's name."""


class BrokenStateError(Exception):
    """A checkpoint file is corrupt."""


def saved_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"), reverse=True)


def save_checkpoint(folder: Path, state: Tree) -> Path:
    """Write a state as the folder's newest checkpoint, atomically. Raises UserError when it cannot be written."""
    tensors: dict[str, Tensor] = {}
    rest = json.dumps(_take_out(state, tensors)).encode()
    content = save({**tensors, _REST: torch.frombuffer(bytearray(rest), dtype=torch.uint8)})
    newest = next((int(path.name.partition(".")[0]) for path in saved_checkpoints(folder)), 0)
    path = folder / f"{newest + 1:08d}.{hashlib.sha256(content).hexdigest()}{_SUFFIX}"
    with atomic_write(path) as stream:
        stream.write(content)
    return path


def load_checkpoint(path: Path) -> Tree:
    """Read a checkpoint, with tensors on the CPU. Raises BrokenStateError."""
    try:
        if sha256(path) != path.name.split(".")[1]:
            raise BrokenStateError(f"{path} is corrupt")
        with safe_open(path, framework="pt") as file:
            # Clone: the tensors are views of the memory-mapped file.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # not a mapping
            return _put_back(json.loads(tensors.pop(_REST).numpy().tobytes()), tensors)
    except (OSError, SafetensorError, KeyError) as error:
        raise BrokenStateError(f"{path} cannot be read ({error})") from error


def _take_out(value: Tree, tensors: dict[str, Tensor]) -> Tree:
    """Return `value` with each tensor replaced by a name and moved to `tensors`."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().contiguous()
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        return {key: _take_out(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_take_out(item, tensors) for item in value]
    return value


def _put_back(value: Tree, tensors: Mapping[str, Tensor]) -> Tree:
    if isinstance(value, dict):
        return tensors[value[_TENSOR]] if _TENSOR in value else {k: _put_back(v, tensors) for k, v in value.items()}
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    return value


_GENERATIONS = 2
_OTHERS = 3
"""Number of other interrupted runs whose checkpoints are kept, besides active runs; each has at most 2 files."""
_PAUSE = 40
"""Minimum time until the next save, as a multiple of the last save's duration: at most 2.5 % overhead on any disk."""


class Resume:
    """Write and load checkpoints of a run, and stop on Ctrl-C or SIGTERM only after saving one.

    A context manager: inside it, signals are deferred to `checkpoint`. A checkpoint that cannot be written is only a
    warning. Two processes may share a folder: every checkpoint in it belongs to the same run.
    """

    def __init__(self, folder: Path | None, every: float, observer: Observer) -> None:
        """folder: for this run's checkpoints, next to those of other runs; every: seconds between two saves.

        Without a folder, or with 0 seconds, nothing is saved or loaded, and signals are left alone.
        """
        self._folder = folder if every else None
        self._every, self._observer = every, observer
        self._stack = ExitStack()
        self._interrupted: Callable[[], bool] = lambda: False
        self._due = time.monotonic() + every
        self._failing = False
        self._broken: set[Path] = set()
        self.seconds = 0.0
        """Total time spent saving."""

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._interrupted = self._stack.enter_context(interrupts_held_back())
            try:
                self._stack.enter_context(run_lock(self._folder))
                prune_others(self._folder, _OTHERS)
            except UserError as error:
                self._observer.say(f"warning: {error}; another training run may remove this one's checkpoints")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def load(self) -> Tree | None:
        """Return the state in the newest intact checkpoint, if any; warn about each corrupt one."""
        for path in saved_checkpoints(self._folder) if self._folder is not None else ():
            try:
                return load_checkpoint(path)
            except BrokenStateError as error:
                self._observer.say(f"warning: {error}: falling back to the previous checkpoint, if any")
                self._broken.add(path)
        return None

    def newest(self) -> str:
        """Return the path of the newest checkpoint, or `none`."""
        states = self._whole(self._folder) if self._folder is not None else []
        return str(states[0]) if states else "none"

    def checkpoint(self, step: int, state: Callable[[], Tree]) -> None:
        """Save if a save is due, or if a signal is pending, which then raises KeyboardInterrupt; call between two
        updates.
        """
        interrupted = self._interrupted()
        if self._folder is not None and (interrupted or time.monotonic() >= self._due):
            self._save(self._folder, state)
        if interrupted:
            where = "its checkpoint could not be saved" if self._failing else "run it again to resume from there"
            raise KeyboardInterrupt(f"stopped after step {step}; {where}")

    def last(self, state: Callable[[], Tree]) -> None:
        """Save a final checkpoint after training, so that the results can be rewritten without retraining."""
        if self._folder is not None:
            self._save(self._folder, state)

    def _whole(self, folder: Path) -> list[Path]:
        """Return the checkpoints not known to be corrupt, newest first."""
        return [path for path in saved_checkpoints(folder) if path not in self._broken]

    def _save(self, folder: Path, state: Callable[[], Tree]) -> None:
        started = time.monotonic()
        try:
            save_checkpoint(folder, state())
            for old in (*self._broken, *self._whole(folder)[_GENERATIONS:]):
                old.unlink(missing_ok=True)
            self._failing = False
        except Exception as error:
            if not (isinstance(error, UserError) or is_out_of_memory(error)):
                raise
            if not self._failing:
                fault = error if isinstance(error, UserError) else "it does not fit into memory beside the training"
                self._observer.say(f"warning: no checkpoint saved, training continues: {fault}")
            self._failing = True
        now = time.monotonic()
        self.seconds += now - started
        self._due = now + max(self._every, _PAUSE * (now - started))

    def finish(self) -> None:
        """Remove the checkpoints once the written outputs are final. Raises on a pending signal."""
        if self._interrupted():
            raise KeyboardInterrupt("stopped; run it again to resume from there")
        if (folder := self._folder) is not None:
            self._observer.once_checked(lambda: shutil.rmtree(folder, ignore_errors=True))


def resumable(states: Path | None, key: str, every: float, observer: Observer) -> Resume:
    """Make the `Resume` of the training with this `training_key`, with its own folder in `states`."""
    folder = states / key if states is not None and every else None
    return Following(folder, observer) if rank() else Resume(folder, every, observer)  # rank 0 saves


class Following(Resume):
    """`Resume` for ranks above 0: reads the checkpoint that rank 0 reads, and writes nothing."""

    def __init__(self, folder: Path | None, observer: Observer) -> None:
        super().__init__(None, 0, observer)
        self._saved = folder

    def load(self) -> Tree | None:
        """Load the state from rank 0's checkpoint folder."""
        self._folder = self._saved
        try:
            return super().load()
        finally:
            self._folder = None


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], bool]]:
    """Defer the first Ctrl-C or SIGTERM while the block runs; yields a function that says whether one arrived.

    The second one raises KeyboardInterrupt at once. Outside the main thread, where Python allows no signal handlers,
    nothing is deferred.
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
