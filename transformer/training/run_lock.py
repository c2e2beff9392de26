"""Lock files of active runs, next to their checkpoints; the kernel releases a lock when its process dies."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer.core.errors import UserError

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
