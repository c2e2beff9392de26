"""A tiny training in two processes, and one alone: `python -m tests.system.training.together KIND`.

KIND: `nonfinite`, `memory` or `failing`, a trouble that rank 1 has, or all of them.
"""

import json
import sys
from typing import Any

from tests.stages import Said
from tests.training.line import CPU, Line, params
from tests.training.test_trouble import Faulty, Full
from transformer.core.errors import UserError
from transformer.training.distributed import join, process_group, rank
from transformer.training.loop import fit


def learner(kind: str, *, alone: bool) -> Line:
    if kind == "memory":
        return Full(2 if alone or rank() else 8)
    return Faulty(1)


def main() -> None:
    kind = sys.argv[1]
    changes = {"nonfinite": {"non_finite": "skip"}, "memory": {"out_of_memory": "halve"}, "failing": {}}[kind]
    settings, listener = params(shards=2, epochs=2, **changes), Said()
    found: dict[str, Any] = {}
    if rank():
        join()
    try:
        with process_group(2, CPU.device, "00") as group:
            fitted = fit(learner(kind, alone=False), settings, CPU, log_every=1, observer=listener, group=group)
        if rank():
            return
        alone = fit(learner(kind, alone=True), settings, CPU, log_every=1, observer=Said())
        for name, result in (("together", fitted), ("alone", alone)):
            weight = float(result.state["weight"].item()).hex()
            found[name] = [weight, result.skipped, result.pieces, result.history.rows]
    except UserError as error:
        found["error"] = str(error)
    print(json.dumps(found | {"lines": listener.lines}))


if __name__ == "__main__":
    main()
