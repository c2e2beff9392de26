"""The process of a stage: the right Python, threads that do not spin for long, the cores that it may use.

DVC starts the first `python` on PATH, after removing the stage's outputs, even if `.venv/bin/dvc repro` runs without an
activated environment: a stage restarts in the environment that DVC itself runs in if that Python lacks the libraries.
Only the standard library of Python 3.7 is imported here.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

_NEEDED = ("pydantic", "ruamel", "tokenizers", "torch", "tqdm")
_TAKEN_OVER = "TRANSFORMER_STAGE_TAKEN_OVER"
_SHELLS = 3  # processes between DVC and a stage, at most


def require_module() -> None:
    """Exit with one line if a stage runs as a file: Python then looks for the standard library's `tokenize` beside it.

    That is imported from all over the library.
    """
    main = sys.modules["__main__"]
    script = Path(getattr(main, "__file__", None) or "-")
    if main.__spec__ is None and script.parent.name == "stages":
        words = ("python", "-m", f"stages.{script.stem}", *(sys.argv[1:] or ["TASK"]))
        sys.exit(f"error: a stage runs as a module: `{' '.join(words)}`, in the project's folder")


def require_libraries() -> None:
    """Restart in an environment with the libraries if this one lacks some; exit with one line if there is none."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if not missing:
        return
    command = getattr(sys, "orig_argv", [])
    if _TAKEN_OVER not in os.environ and command:
        for python in (*_of_dvc(), Path(os.environ.get("DVC_ROOT", ""), ".venv", "bin", "python")):
            if python.is_file() and os.access(str(python), os.X_OK):
                os.environ[_TAKEN_OVER] = "1"
                os.execv(str(python), [str(python), *command[1:]])
    sys.exit(
        f"error: {sys.executable} has no {', '.join(missing)}: activate the project's environment"
        " (`source .venv/bin/activate`) or use `make repro`; `dvc checkout` restores removed outputs"
    )


def _of_dvc() -> Iterator[Path]:
    """Yield the Python of the DVC process that started this one, if /proc shows it (Linux)."""
    process = os.getppid()
    for _ in range(_SHELLS):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return
        if any(word.rpartition(b"/")[2] == b"dvc" for word in words[1:]):
            yield Path(os.fsdecode(words[0]))


T = TypeVar("T")
ROUNDS = 2_000
"""Rounds that an OpenMP thread spins before it sleeps; GNU's own default is 300,000, which takes milliseconds.

Where another process keeps a core busy, a spinning thread takes away the time that the thread it waits for needs, at
every one of thousands of operations per update; waking one that sleeps costs more than most operations take. The
default's translation on two cores of an AMD EPYC (Turin), updates per second alone, and with a core shared with two
busy processes:

    rounds   10,000   2,000   1,000    500
    alone      35.8    34.3    33.8   27.6
    shared      2.4     8.8    12.4   15.6

On an Intel Xeon 1,000 rounds took 1.4 times as long as 10,000 alone, 3,000 1.1 times.
"""
WATCHED, WAITED, SILENT = 30.0, 0.5, 600.0
"""Seconds between two checks, maximum share of them that threads may wait for a processor, seconds between two
warnings."""


def limit_openmp_spin() -> None:
    """Limit OpenMP spinning for this process and its children, before torch is loaded; a user's own setting stays."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(ROUNDS))


def watched(items: Iterable[T], say: Callable[[str], None]) -> Iterator[T]:
    """Yield the items, and warn when other programs occupy the processor that this process's threads need."""
    begun, before, silent = time.perf_counter(), _waited(), 0.0
    for item in items:
        yield item
        now = time.perf_counter()
        if now - begun < WATCHED:
            continue
        waited, seconds = _waited() - before, now - begun
        begun, before = now, before + waited
        if waited > WAITED * seconds and now > silent:
            silent = now + SILENT
            say(
                f"warning: other programs keep the processor busy: in the last {seconds:.0f} s this one waited"
                f" {waited:.0f} s for it. End them, or start this one again with GOMP_SPINCOUNT=300 in the environment,"
                " which is faster beside others and slower alone, and changes no result"
            )


def _waited() -> float:
    """Return the seconds that this process's threads were ready but not running; 0 if the kernel does not report it."""
    waited = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread has ended in the meantime
            waited += int(path.read_text().split()[1])
    return waited / 1e9


def usable_cores() -> int:
    """Count the processor cores available to the process, as limited by `taskset` and container runtimes.

    A quota of 1.5 cores keeps two threads busy, which then rest for a quarter of the time.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    own = Path("/proc/self/cgroup")
    return math.ceil(min(cores, quota(own.read_text(), Path("/sys/fs/cgroup")) if own.exists() else math.inf))


def quota(groups: str, mounted: Path) -> float:
    """Return how many cores the process's control groups grant it, version 1 or 2; infinity without a limit.

    groups: the content of /proc/self/cgroup; mounted: where the groups are. A container may see its own group there
    alone, at the top.
    """
    granted = [math.inf]
    for controllers, group in (line.split(":", 2)[1:] for line in groups.splitlines()):
        if not controllers or "cpu" in controllers.split(","):
            top = mounted / "cpu" if controllers else mounted
            below = [Path(group.lstrip("/")), *Path(group.lstrip("/")).parents]
            granted += [_granted(top / folder) for folder in below]
    return min(granted)


def _granted(group: Path) -> float:
    """Return the cores that one control group grants."""
    try:
        whole = group / "cpu.max"
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        text = whole.read_text() if whole.exists() else " ".join((group / name).read_text() for name in names)
        time, period = map(int, text.split())
    except (OSError, ValueError):  # no such group here; `max`
        return math.inf
    return time / period if time > 0 else math.inf
