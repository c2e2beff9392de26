"""How long OpenMP's threads wait for each other in a loop before they sleep.

PyTorch's products and loops run on GNU OpenMP where it comes from pip for Linux. A thread that has done its part spins
300,000 rounds, milliseconds, before it sleeps; where another process keeps a core busy, it takes away the time that the
thread it waits for would need, at every one of thousands of operations per update. 10,000 rounds cost next to nothing
on idle cores and keep training usable on busy ones (benchmarks/busy.py).
"""

import os

ROUNDS = 10_000


def spin_briefly() -> None:
    """Set it for this process and those that it starts, before torch is loaded; a user's own setting stays."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(ROUNDS))
