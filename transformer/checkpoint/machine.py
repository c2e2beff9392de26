"""What the machine offers to this process."""

import os


def usable_cores() -> int:
    """Processor cores that the process may use, as `taskset` and container runtimes limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
