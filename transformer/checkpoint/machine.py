"""Machine resources available to this process."""

import os

from transformer.core.schema import Runtime


def usable_cores() -> int:
    """Count the processor cores available to the process, as limited by `taskset` and container runtimes."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_own_cores(runtime: Runtime, threads: int) -> Runtime:
    """Limit the workers to the available cores, given threads per worker; 0 if only one would fit.

    Threads that wait for each other at every product make two workers several times slower than one process. On a
    Ray cluster that is not this machine the cores are not known.
    """
    most = usable_cores() // threads
    if runtime.workers <= max(most, 1) or _joins_a_cluster(runtime):
        return runtime
    return runtime.model_copy(update={"workers": most if most > 1 else 0})


def shared_cores(runtime: Runtime, threads: int) -> str | None:
    """Return a warning if the trainers' threads exceed the available cores; else None."""
    size, cores = runtime.trainers, usable_cores()
    if size * threads <= cores or size < 2:
        return None
    return (
        f"warning: {size} trainers with {threads} threads each share {cores} cores, which is slow: lower"
        " runtime.trainers or hardware.threads (which changes the last bits of the result)"
    )


def _joins_a_cluster(runtime: Runtime) -> bool:
    return runtime.engine == "ray" and bool(runtime.address or os.environ.get("RAY_ADDRESS"))
