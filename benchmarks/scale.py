"""How the stages that run in workers grow with the corpus: `python -m benchmarks.scale`.

`tokenize` and `build_vocab` on a million sample pairs (`--sizes`) with one worker and with two, and the decoding and
scoring of `evaluate` on 20,000 (`--decoded`), whose cost per sentence does not depend on how many there are. The seed's
parameters; the model is trained for one epoch on 29,000 sample pairs, and each worker has one thread. Seconds, the
memory of the largest process, and the sizes of what each stage writes. docs/scale.md computes larger clusters and
corpora from these.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.harness import Options, Report, Table, main
from benchmarks.pipeline import corpus_of, run_measured
from benchmarks.workspace import FOLDER, Workspace, ensure, new_workspace

STAGES = {"tokenize": ("tokens",), "build_vocab": ("vocab", "encoded")}
"""Their outputs in the task's data folder."""
WORKERS = {"1 worker": 1, "2 workers": 2}
_MEGA = 1e6
Values = dict[str, list[float]]


def measure(options: Options) -> Report:
    """Seconds, and megabytes."""
    tables: list[Table] = []
    for size in options.more.sizes:
        workspace = corpus_of(size)
        for stage, outputs in STAGES.items():
            tables += _tables(f"{stage}, {size:,} pairs", workspace, stage, options)
            tables.append(_sizes(f"{stage}, {size:,} pairs", workspace, ("corpus", *outputs)))
    if options.more.decoded:
        workspace = _trained(options.more.decoded)
        tables += _tables(f"evaluate, {options.more.decoded:,} pairs", workspace, "evaluate", options)
    return Report(tables)


def _tables(title: str, workspace: Workspace, stage: str, options: Options) -> list[Table]:
    chosen = {name: workers for name, workers in WORKERS.items() if workers in options.more.workers}
    seconds: Values = {name: [] for name in chosen}
    peaks: Values = {name: [] for name in chosen}
    for number in range(1, options.rounds + 1):
        for name, workers in chosen.items():
            workspace.change({"runtime.workers": workers})
            taken, peak = run_measured(workspace, stage)
            print(f"  round {number}  {title}  {name}  {taken:.1f} s  {peak:.0f} MB", file=sys.stderr)
            seconds[name].append(taken)
            peaks[name].append(peak)
    first = next(iter(chosen))
    return [Table(title, "s", seconds, first), Table(f"{title}, largest process", "MB", peaks, first)]


def _sizes(title: str, workspace: Workspace, folders: tuple[str, ...]) -> Table:
    data = workspace.data("translation")
    found: Values = {name: [_bytes(data / name) / _MEGA] for name in folders}
    return Table(f"{title}, files", "MB", found, folders[0])


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _trained(rows: int) -> Workspace:
    """A workspace with a model, and this many pairs of the split `test`."""
    workspace = new_workspace(FOLDER / f"scale-evaluate-{rows}")
    workspace.change({"translation.download.sample_rows.test": rows, "translation.train.epochs": 1})
    ensure(workspace, "translation", ("download", "tokenize", "build_vocab", "train"))
    workspace.change({"hardware.threads": 1})  # each worker has so many
    return workspace


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000_000], help="pairs (default: a million)")
    parser.add_argument("--workers", type=int, nargs="+", choices=[*WORKERS.values()], default=[*WORKERS.values()])
    parser.add_argument("--decoded", type=int, default=20_000, help="pairs to evaluate; 0: none (default: 20,000)")


if __name__ == "__main__":
    main("scale", __doc__, measure, arguments=arguments, rounds=1)
