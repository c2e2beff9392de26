"""What the machine offers to this process."""

import os

from transformer.core.schema import Runtime


def usable_cores() -> int:
    """Processor cores that the process may use, as `taskset` and container runtimes limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared_cores(runtime: Runtime, name: str, threads: int) -> str | None:
    """A warning if the processes of `runtime.NAME` have more threads together than there are cores; None if not.

    Threads that wait for each other at every product make two workers several times slower than one. On a Ray cluster
    that is not this machine it is not known.
    """
    size, cores = getattr(runtime, name), usable_cores()
    if size * threads <= cores or size < 2 or runtime.address:
        return None
    return (
        f"warning: {size} {name} with {threads} threads each share {cores} cores, which is slow: lower runtime.{name}"
        " or hardware.threads (which changes the last bits of the result)"
    )
