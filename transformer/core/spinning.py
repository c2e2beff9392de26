"""Limit how long OpenMP threads spin before they sleep, and warn when other programs slow them down.

PyTorch's products and loops run on GNU OpenMP where it comes from pip for Linux. A thread that has done its part spins
300,000 rounds, milliseconds, before it sleeps; where another process keeps a core busy, it takes away the time that the
thread it waits for would need, at every one of thousands of operations per update. Fewer rounds keep training usable
there, and waking a thread that sleeps costs more than most operations take. The default's translation on two cores of
an AMD EPYC (Turin), updates per second alone, and with one core shared with two busy processes:

    rounds   10,000   2,000   1,000    500
    alone      35.8    34.3    33.8   27.6
    shared      2.4     8.8    12.4   15.6

On an Intel Xeon 1,000 rounds took 1.4 times as long as 10,000 alone, 3,000 1.1 times.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
ROUNDS = 2_000
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
