"""How tokenize and build_vocab scale with the corpus: `python -m benchmarks.pipeline`.

Time and peak memory for 10,000 and 100,000 pairs, the sample's again and again (`--sizes`). The stages run as under
DVC, each in its own process, with the seed's two workers. The time per pair excludes that of the run on 1,000 pairs,
which is mostly start-up. The peak is that of the largest process.
"""

import argparse
import json
import sys
from itertools import cycle, islice

from benchmarks.harness import Options, Report, Table, main
from benchmarks.workspace import FOLDER, Workspace, new_workspace, prepared
from tests.kit import ROOT
from transformer.core.files import copy_folder

STAGES = ("tokenize", "build_vocab")
_SMALL = 1_000


def measure(options: Options) -> Report:
    """Milliseconds per pair, and megabytes."""
    sizes = options.more.sizes
    workspaces = {size: corpus_of(size) for size in (_SMALL, *sizes)}
    times: dict[str, list[float]] = {f"{stage}, {size:,} pairs": [] for stage in STAGES for size in sizes}
    peaks: dict[str, list[float]] = {name: [] for name in times}
    for number in range(1, options.rounds + 1):
        for stage in STAGES:
            start, _ = run_measured(workspaces[_SMALL], stage)
            for size in sizes:
                name = f"{stage}, {size:,} pairs"
                seconds, peak = run_measured(workspaces[size], stage)
                print(f"  round {number}  {name}  {seconds:.1f} s  {peak:.0f} MB", file=sys.stderr)
                times[name].append((seconds - start) / (size - _SMALL) * 1000)
                peaks[name].append(peak)
    return Report(
        [
            Table(f"{stage}, {what}", unit, {name: values[name] for name in values if name.startswith(stage)}, first)
            for stage in STAGES
            for what, unit, values in (("time", "ms a pair", times), ("peak memory", "MB", peaks))
            for first in [f"{stage}, {sizes[0]:,} pairs"]
        ]
    )


def corpus_of(size: int) -> Workspace:
    """A workspace whose train split has this many pairs: the sample's, again and again."""
    sample = prepared("translation", None, ("download",))
    workspace = new_workspace(FOLDER / f"pipeline-{size}")
    corpus = workspace.data("translation") / "corpus"
    copy_folder(sample.data("translation") / "corpus", corpus)
    lines = (corpus / "train.jsonl").read_bytes().splitlines(keepends=True)
    with (corpus / "train.jsonl").open("wb") as stream:
        stream.writelines(islice(cycle(lines), size))
    return workspace


def run_measured(workspace: Workspace, stage: str) -> tuple[float, float]:
    """Run a stage of translation. Returns its seconds and the peak of its largest process in megabytes."""
    peak = str(ROOT / "benchmarks" / "peak.py")
    printed = workspace.call(peak, sys.executable, "-m", f"stages.{stage}", "translation")
    seconds, megabytes = json.loads(printed.splitlines()[-1])
    return float(seconds), float(megabytes)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], help="pairs, at least 2,000")


if __name__ == "__main__":
    main("pipeline", __doc__, measure, arguments, rounds=1)
