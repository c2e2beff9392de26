"""What shards and training processes cost: `python -m benchmarks.shards`.

The seed's translation model on random words (benchmarks/growth.py), every contender in a process of its own with as
many threads as it trains with: one process of two threads, the same with four shards, and two processes of one thread.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.growth import Size, random_pairs
from benchmarks.harness import Options, Report, Table, Work, main, measured, rates
from benchmarks.isolated import isolated
from benchmarks.training import OurLoop
from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware
from transformer.families.seq2seq.train import Seq2SeqTraining
from transformer.training.team import Processes, Single, Team
from transformer.training.trainable import Opened


class Setting(NamedTuple):
    """How an update is computed."""

    shards: int
    trainers: int
    threads: int


SETTINGS = {
    "1 process of 2 threads": Setting(1, 1, 2),
    "1 process of 2 threads, 4 shards": Setting(4, 1, 2),
    "2 processes of 1 thread, 2 shards": Setting(2, 2, 1),
    "2 processes of 1 thread, 4 shards": Setting(4, 2, 1),
}


def measure(options: Options) -> Report:
    """Updates per second."""
    with TemporaryDirectory() as folder:
        contenders = {
            name: isolated(contender, setting, Path(folder), options.more.steps, threads=setting.threads)
            for name, setting in SETTINGS.items()
        }
        done = measured(contenders, options)
    return Report([Table("Training", "updates/s", rates(done), next(iter(SETTINGS)))])


def contender(setting: Setting, folder: Path, steps: int) -> "partial[Work]":
    """What a process of `isolated` does in a round."""
    return partial(_round, setting, folder, steps)


def _round(setting: Setting, folder: Path, steps: int, number: int) -> Work:
    opening = partial(open_run, setting, folder / str(setting), steps)
    opened = opening()
    loop = OurLoop(opened.trainable, opened.params, opened.compute)
    batches = opened.trainable.batches(1)
    with _team(setting, opening, opened) as team:
        return Work(len(batches) - 1, loop.steps(batches, team=team).seconds)  # the first one is not timed


def open_run(setting: Setting, folder: Path, steps: int) -> Opened:
    """The run before its first update."""
    compute = prepare(Hardware(device="cpu", precision="auto", threads=setting.threads, deterministic=False))
    pairs, train = random_pairs(Size(), steps, folder)
    train = train.model_copy(update={"shards": setting.shards})
    training = Seq2SeqTraining(pairs, pairs, train, compute, None)
    return Opened(trainable=training, config=pairs.config, params=train, compute=compute, truncated=0)


@contextmanager
def _team(setting: Setting, opening: "partial[Opened]", opened: Opened) -> Iterator[Team]:
    if setting.trainers == 1:
        yield Single()
        return
    with Processes(setting.trainers, opening, opened.compute, retries=0, observer=Observer()) as team:
        yield team


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=10, help="updates per round (default: 10)")


if __name__ == "__main__":
    main("shards", __doc__, measure, arguments=arguments, rounds=5)
