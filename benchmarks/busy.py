"""What a busy core costs training: `python -m benchmarks.busy`.

The seed's translation model on random words with two threads, alone and beside a process that keeps one core busy; as
PyTorch comes, and with threads that wait briefly for each other (transformer/core/spinning.py).
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Options, Report, Table, Target, Work, main, measured, rates
from benchmarks.isolated import isolated
from benchmarks.shards import Setting, contender
from transformer.core.spinning import spin_briefly

_PEER = "as PyTorch comes"
_OURS = "waits briefly"
_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
_BESIDE = ", beside a busy process"


def measure(options: Options) -> Report:
    """Updates per second."""
    with TemporaryDirectory() as folder:
        work = partial(isolated, contender, Setting(1, 1, 2), Path(folder), options.more.steps, threads=2)
        found = {_PEER: work(), _OURS: work()}
        settings = {_PEER: {}, _OURS: _setting()}
        contenders = {
            f"{name}{beside}": partial(_round, run, settings[name], bool(beside))
            for beside in ("", _BESIDE)
            for name, run in found.items()
        }
        done = measured(contenders, options)
    targets = (Target(_OURS, _PEER, 0.95), Target(f"{_OURS}{_BESIDE}", f"{_PEER}{_BESIDE}", 2))
    return Report([Table("Training", "updates/s", rates(done), _PEER, targets)])


def _round(run: Callable[[int], Work], setting: Mapping[str, str], busy: bool, number: int) -> Work:
    """The first round starts the contender's process, which reads its setting then."""
    with _environment(setting), _busy() if busy else nullcontext():
        return run(number)


def _setting() -> dict[str, str]:
    with _environment({}):
        before = {**os.environ}
        spin_briefly()
        return {name: value for name, value in os.environ.items() if name not in before}


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = {**os.environ}
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):  # the user's own
        os.environ.pop(name, None)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", _LOOP]) as process:
        try:
            yield
        finally:
            process.kill()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=10, help="updates per round (default: 10)")


if __name__ == "__main__":
    main("busy", __doc__, measure, arguments=arguments, rounds=3)
