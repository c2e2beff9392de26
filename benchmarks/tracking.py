"""The cost of MLflow tracking in training: `python -m benchmarks.tracking [--rounds 5] [--epochs 2]`.

The whole stage `train@translation` with the default parameters, with tracking on and off, each in its own process, on a
copy of the checkout. A run of less than three minutes leaves opening MLflow to the next stage; here each opens it at
once. The target is 2 % of the shortest run that does.
"""

import argparse
import subprocess
import sys
import time

from benchmarks.harness import Contender, Limit, Options, Report, Table, Work, main, measured, seconds
from benchmarks.workspace import ROOT, Workspace, clone
from transformer.commands.profiles import default_params
from transformer.core.errors import UserError
from transformer.tracking.live import SHORT_SECONDS

ON, OFF = "tracking on", "tracking off"
ADDED = "tracking"


def measure(options: Options) -> Report:
    """Seconds of the stage."""
    workspace = clone("tracking", default_params(ROOT))
    changes = {
        "translation.train.epochs": options.more.epochs,
        "translation.train.patience": None,
        "hardware.threads": options.hardware.threads,
    }
    workspace.change(changes)
    live = workspace.root / "transformer" / "tracking" / "live.py"
    live.write_text(live.read_text().replace(f"SHORT_SECONDS = {SHORT_SECONDS}\n", "SHORT_SECONDS = 0.0\n"))
    print("  dvc repro build_vocab@translation", file=sys.stderr)
    workspace.call("dvc", "repro", "build_vocab@translation")
    contenders: dict[str, Contender] = {
        ON: lambda number: _train(workspace, tracking=True),
        OFF: lambda number: _train(workspace, tracking=False),
    }
    contenders[ON](0)  # creates the database
    times = seconds(measured(contenders, options, warm=False))
    added = {ADDED: [on - off for on, off in zip(times[ON], times[OFF], strict=True)]}
    limits = [Limit(ADDED, 0.02 * SHORT_SECONDS)]
    tables = [
        Table("Training with and without tracking", "seconds", times, OFF),
        Table("Seconds that MLflow adds to a training", "seconds", added, ADDED, limits=limits),
    ]
    return Report(tables, {"epochs": options.more.epochs})


def _train(workspace: Workspace, *, tracking: bool) -> Work:
    workspace.change({"runtime.tracking": tracking})
    environment = workspace.environment() | {"DVC_ROOT": str(workspace.root)}
    started = time.perf_counter()
    done = subprocess.run(
        workspace.command("train", "translation"),
        cwd=workspace.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UserError(f"training failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return Work(1, time.perf_counter() - started)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--epochs", type=int, default=2, help="epochs of each run (default: 2)")


if __name__ == "__main__":
    main("tracking", __doc__, measure, arguments=arguments)
