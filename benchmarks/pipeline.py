"""How tokenize and build_vocab scale with the corpus: time and peak memory for 10,000 and 100,000 sample pairs, and
with `--full` for 1,000,000: `python -m benchmarks.pipeline`.

The stages run as under DVC, each in its own process, with the seed's two workers. The time per pair excludes that of
the run on 1,000 pairs, which is mostly start-up; for 10,000 pairs the rest is a fraction of a second, too little to
compare with. The peak is that of the largest process.
"""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path

from benchmarks.harness import Options, Report, Table, Target, main
from benchmarks.workspace import FOLDER, ROOT, SAMPLE_ROWS, Workspace, ensure, new_workspace

SIZES = (10_000, 100_000, 1_000_000)
STAGES = ("tokenize", "build_vocab")
MEMORY = "peak memory"
_SMALL = 1_000
_SAMPLE = SAMPLE_ROWS["translation"]
_ALLOWED = 1.1
"""Maximum ratio of peak memory to that of the smallest corpus, and of time per pair to that of the second one."""


def measure(options: Options) -> Report:
    """Milliseconds per pair, and megabytes."""
    sizes = SIZES if options.more.full else SIZES[:-1]
    sizes = tuple(options.more.sizes or sizes)
    workspaces = {size: corpus_of(size) for size in (_SMALL, *sizes)}
    times: dict[str, list[float]] = {}
    peaks: dict[str, list[float]] = {}
    for number in range(1, options.rounds + 1):
        start = dict.fromkeys(STAGES, 0.0)
        for size, workspace in workspaces.items():
            for stage in STAGES:
                seconds, peak = run_measured(workspace, stage)
                print(f"  round {number}  {stage}  {size:,} pairs  {seconds:.1f} s  {peak:.0f} MB", file=sys.stderr)
                if size == _SMALL:
                    start[stage] = seconds
                    continue
                times.setdefault(_name(stage, size), []).append((seconds - start[stage]) / (size - _SMALL) * 1000)
                peaks.setdefault(_name(stage, size), []).append(peak)
    kinds = (("time", "ms a pair", times), (MEMORY, "MB", peaks))
    return Report([_table(stage, sizes, *kind) for stage in STAGES for kind in kinds])


def _table(stage: str, sizes: tuple[int, ...], what: str, unit: str, values: dict[str, list[float]]) -> Table:
    names = [_name(stage, size) for size in sizes]
    peer = names[0] if what == MEMORY else names[:2][-1]
    targets = [Target(name, peer, _ALLOWED, at_least=False) for name in names[names.index(peer) + 1 :]]
    return Table(f"{stage}, {what}", unit, {name: values[name] for name in names}, peer, targets)


def _name(stage: str, size: int) -> str:
    return f"{stage}, {size:,} pairs"


def corpus_of(size: int) -> Workspace:
    """A workspace with this many sample pairs; more than the sample has: all of them several times."""
    workspace = new_workspace(FOLDER / f"pipeline-{size}")
    repeated = size > _SAMPLE
    workspace.change({"translation.download.sample_rows.train": _SMALL if repeated else size})
    ensure(workspace, "translation", ("download",))
    if repeated:
        sample = _train(corpus_of(_SAMPLE))
        with _train(workspace).open("wb") as written, sample.open("rb") as copied:
            for start in range(0, size, _SAMPLE):
                copied.seek(0)
                written.writelines(islice(copied, size - start))
    return workspace


def _train(workspace: Workspace) -> Path:
    return workspace.data("translation") / "corpus" / "train.jsonl"


def run_measured(workspace: Workspace, stage: str) -> tuple[float, float]:
    """Run a stage of translation. Returns its seconds and the peak of its largest process in megabytes."""
    command = workspace.command(stage, "translation")
    printed = workspace.call(sys.executable, str(ROOT / "benchmarks" / "peak.py"), *command)
    seconds, peak = json.loads(printed.splitlines()[-1])
    return float(seconds), float(peak)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--full", action="store_true", help="also 1,000,000 pairs, which takes some more minutes")
    parser.add_argument("--sizes", type=int, nargs="+", help="corpus sizes in pairs, smallest first, at least 2,000")


if __name__ == "__main__":
    main("pipeline", __doc__, measure, arguments=arguments, rounds=1)
