"""Whether training stays as fast as in its first minute: `make bench-lasting`, or `python -m benchmarks.lasting`.

Our real loop (with the C library's allocator, and with tcmalloc if installed), that of an older commit, and the
straightforward model, each in its own process, take turns of five updates until ours have made `--updates` after five
warm-up updates. Validation does not count. The straightforward model, whose speed is steady, takes a turn in every
fourth round. `--allocators` adds our loop with other allocators for 250 updates.
"""

import argparse
import io
import subprocess
import sys
import tarfile
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks import training_sentiment, training_translation
from benchmarks.harness import Limit, Options, Report, Table, Target, main
from benchmarks.isolated import isolated
from benchmarks.training_sentiment import RANDOM
from benchmarks.training_translation import STRAIGHTFORWARD
from benchmarks.translation import open_task
from benchmarks.turns import BLOCK
from benchmarks.workspace import FOLDER, ROOT, Workspace, prepared
from transformer.core.errors import UserError
from transformer.core.schema import Hardware
from transformer.families.classifier.train import Params as SentimentParams

OURS = "ours"
OURS_TCMALLOC = "ours, tcmalloc"
TCMALLOC = find_library("tcmalloc_minimal") or find_library("tcmalloc")
_ALLOCATORS: dict[str, dict[str, str | None]] = {
    "THP_MEM_ALLOC_ENABLE=1": {"THP_MEM_ALLOC_ENABLE": "1"},
    "glibc.malloc.hugetlb=1": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "jemalloc, decay 60 s": {
        "LD_PRELOAD": find_library("jemalloc"),
        "MALLOC_CONF": "dirty_decay_ms:60000,muzzy_decay_ms:60000",
    },
    "mimalloc": {"LD_PRELOAD": find_library("mimalloc")},
}
_ALLOCATORS_UPDATES = 250
_SPAN = 50
"""Updates per point in the tables."""
_PEERS = {"translation": (training_translation, STRAIGHTFORWARD), "sentiment": (training_sentiment, RANDOM)}
_UNITS = {"translation": "source and target tokens/s", "sentiment": "reviews/s"}
_AT_MOST = {"translation": 0.7, "sentiment": 1.0}
"""Fraction of the older commit's seconds."""
_AT_LEAST = {"translation": 2.3, "sentiment": 10.0}
"""Multiple of the straightforward model's rate."""


class Training:
    """A process that trains in turns."""

    def __init__(
        self, workspace: Workspace, task: str, updates: int, code: Path, hardware: Hardware, **settings: str
    ) -> None:
        """settings: environment variables."""
        script = str(ROOT / "benchmarks" / "turns.py")
        arguments = (workspace.root, task, BLOCK + updates, code, hardware.model_dump_json())
        environment = workspace.environment() | {"LD_PRELOAD": ""} | settings
        self._process = subprocess.Popen(
            [sys.executable, script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def turn(self) -> float | None:
        """Seconds of the next updates; None if they included validation. Raises UserError when the process has died."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise UserError("a training process has died: see its output above")
        return None if answer == "-" else float(answer)


def measure(options: Options) -> Report:
    """The rates over the updates, and the last ones compared with the first. Raises UserError."""
    if options.more.updates < _SPAN or options.more.updates % _SPAN:
        raise UserError(f"--updates {options.more.updates} is not a multiple of {_SPAN}")
    tables: list[Table] = []
    before = f"commit {options.more.before}"
    for task in options.more.tasks:
        speeds, peer = _speeds(task, before, options), _PEERS[task][1]
        others = {name: speeds.pop(name) for name in _ALLOCATORS if name in speeds}
        targets = [Target(OURS, before, round(1 / _AT_MOST[task], 2)), Target(OURS, peer, _AT_LEAST[task])]
        spans = range(_SPAN, options.more.updates + 1, _SPAN)
        title = f"Lasting training, {task}"
        tables.append(Table(title, _UNITS[task], speeds, peer, targets, axis=list(spans), axis_label="updates"))
        if others:
            shown = {name: rates[: _ALLOCATORS_UPDATES // _SPAN] for name, rates in (speeds | others).items()}
            spans = spans[: _ALLOCATORS_UPDATES // _SPAN]
            title = f"Allocators, {task}"
            tables.append(Table(title, _UNITS[task], shown, OURS, axis=list(spans), axis_label="updates"))
        slower = {name: [rates[0] / rates[-1]] for name, rates in speeds.items()}
        title = f"Seconds of the last {_SPAN} updates, {task}"
        tables.append(Table(title, f"of the first {_SPAN}'s", slower, peer, limits=[Limit(OURS, 1.05)]))
    return Report(tables, {"updates": options.more.updates, "before": options.more.before})


def _speeds(task: str, before: str, options: Options) -> dict[str, list[float]]:
    """The rate of each contender in every span of updates."""
    updates: int = options.more.updates
    workspace = prepared(task, options.data)
    (module, peer), hardware = _PEERS[task], options.hardware
    peer_options = replace(options, more=argparse.Namespace(steps=BLOCK))
    straightforward = isolated(module.peer, peer, peer_options, threads=hardware.threads)
    trainings = {
        before: Training(workspace, task, updates, _older(options.more.before), hardware),
        OURS: Training(workspace, task, updates, ROOT, hardware),
    }
    if TCMALLOC:
        trainings[OURS_TCMALLOC] = Training(workspace, task, updates, ROOT, hardware, LD_PRELOAD=TCMALLOC)
    if options.more.allocators and task == "translation":
        for name, settings in _ALLOCATORS.items():
            if len(given := {key: value for key, value in settings.items() if value}) == len(settings):
                trainings[name] = Training(workspace, task, _ALLOCATORS_UPDATES, ROOT, hardware, **given)
    taken: dict[str, list[list[float]]] = {name: [[] for _ in range(updates // _SPAN)] for name in trainings}
    rates: list[list[float]] = [[] for _ in range(updates // _SPAN)]
    for number in range(updates // BLOCK):
        span = number * BLOCK // _SPAN
        if number * BLOCK == _ALLOCATORS_UPDATES:
            trainings = {name: training for name, training in trainings.items() if name not in _ALLOCATORS}
        for name in list(trainings)[:: 1 if number % 2 else -1]:
            if (seconds := trainings[name].turn()) is not None:
                taken[name][span].append(seconds)
        if number % 4 == 0:
            rates[span].append(straightforward(number).rate)
        if (number + 1) * BLOCK % _SPAN == 0:
            shown = "  ".join(f"{name} {fmean(taken[name][span]) / BLOCK:.3f} s" for name in trainings)
            print(f"  {task}, update {(number + 1) * BLOCK} of {updates}  {shown}", file=sys.stderr)
    amount = BLOCK * _batch(task, workspace, peer_options)
    found = {name: [amount / fmean(seconds) for seconds in spans if seconds] for name, spans in taken.items()}
    return found | {peer: [fmean(span) for span in rates]}


def _batch(task: str, workspace: Workspace, options: Options) -> float:
    """The mean size of a batch, in the unit of the rates."""
    if task == "sentiment":
        return workspace.params(task, SentimentParams).train.batch_size
    opened = open_task(options)
    return opened.params.train.batch_size * float(opened.train.lengths.sum(axis=1).mean())


def _older(commit: str) -> Path:
    """The package as of a commit. Raises UserError if the repository lacks the commit."""
    root = FOLDER / "code" / commit
    if not root.is_dir():
        done = subprocess.run(["git", "archive", commit, "transformer"], cwd=ROOT, capture_output=True, check=False)
        if done.returncode:
            raise UserError(f"commit {commit} is not in this repository: fetch it, or name another with --before")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(root, filter="data")
    return root


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--updates", type=int, default=400, help=f"a multiple of {_SPAN} (default: 400)")
    parser.add_argument("--before", default="8fe5039", metavar="COMMIT", help="compare with (default: %(default)s)")
    parser.add_argument("--allocators", action="store_true", help="also measure other allocators, for translation")
    parser.add_argument("--tasks", nargs="+", choices=[*_PEERS], default=[*_PEERS], help="run only these")


if __name__ == "__main__":
    main("lasting", __doc__, measure, arguments=arguments)
