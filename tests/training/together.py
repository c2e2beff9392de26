"""A tiny training in two processes: `python -m tests.training.together KIND`. Prints what came of it, and of one alone.

KIND: `nonfinite`, `memory` or `failing`, a trouble that rank 1 has, or all of them.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.training.line import CPU, Line, params
from tests.training.resuming import Watcher
from tests.training.test_trouble import Faulty
from transformer.core.errors import UserError
from transformer.data.store import Ids
from transformer.training.batches import BatchLoss
from transformer.training.distributed import join, process_group, rank
from transformer.training.loop import fit


class Full(Line):
    """Runs out of memory with more than two rows, where it is not spared."""

    def __init__(self, *, spared: bool) -> None:
        super().__init__()
        self.spared = spared

    def loss(self, rows: Ids) -> BatchLoss:
        if len(rows) > 2 and not self.spared:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return super().loss(rows)

    def batches(self, epoch: int) -> Sequence[Ids]:
        return [np.arange(8)]


def learner(kind: str, *, alone: bool) -> Line:
    if kind == "memory":
        return Full(spared=not alone and rank() == 0)
    return Faulty(1)


def main() -> None:
    kind = sys.argv[1]
    changes = {"nonfinite": {"non_finite": "skip"}, "memory": {"out_of_memory": "halve"}, "failing": {}}[kind]
    settings, watcher = params(shards=2, epochs=2, **changes), Watcher()
    found: dict[str, Any] = {}
    if rank():
        join()
    try:
        with process_group(2, CPU.device, "00") as group:
            fitted = fit(learner(kind, alone=False), settings, CPU, log_every=1, observer=watcher, group=group)
        if rank():
            return
        alone = fit(learner(kind, alone=True), settings, CPU, log_every=1, observer=Watcher())
        for name, result in (("together", fitted), ("alone", alone)):
            weight = float(result.state["weight"].item()).hex()
            found[name] = [weight, result.skipped, result.pieces, result.history.rows]
    except UserError as error:
        found["error"] = str(error)
    print(json.dumps(found | {"lines": watcher.lines}))


if __name__ == "__main__":
    main()
