"""Training in shards: the same bytes on any number of processes."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor

from tests.training.golden import RECURRENT
from tests.training.line import CPU, Line, params
from tests.training.resuming import Changes, Watcher, Work, data, work
from tests.training.small import ROOT, outputs, smoke, train
from tests.training.test_trouble import Faulty
from transformer.core.errors import UserError
from transformer.core.schema import Hardware
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.loop import fit
from transformer.training.shards import TreeSum, cut, seed_part
from transformer.training.team import Processes
from transformer.training.trainable import BatchLoss, Opened

__all__ = ["data"]  # a fixture
SHARDS = 4
SHARED: dict[str, Changes] = {
    "pairs, at first in both directions, then R-Drop, token batches, accumulation, word dropout": {
        "train": {
            "batch_unit": "tokens",
            "batch_size": 300,
            "accumulation": 2,
            "word_dropout": 0.2,
            "bidirectional_epochs": 1,
            "r_drop": 1.0,
            "consistency_from": 2,
        }
    }
}
ALL: dict[str, Changes] = {
    "the best epoch": {},
    "a moving average": {"train": {"averaging": "ema", "ema_decay": 0.9, "clip": None}},
    "the mean of the best epochs": {"train": {"averaging": "best", "average_epochs": 2}},
    "AdamW, cosine, R-Drop": {
        "train": {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "r_drop": 1.0},
        "model": {"attention_dropout": 0.1, "activation_dropout": 0.1, "tie_embeddings": "all"},
    },
    "fewer rows than shards": {"train": {"batch_size": 3}},
    "a recurrent model": {"model": RECURRENT | {"teacher_forcing": 0.5}},
}
CASES = [
    *(pytest.param(changes, id=name) for name, changes in SHARED.items()),
    *(pytest.param(changes, id=name, marks=pytest.mark.stress) for name, changes in ALL.items()),
]


def sharded(data: Path, folder: Path, changes: Changes, *, task: str = "translation", shards: int = SHARDS) -> Work:
    """The undisturbed training of one process."""
    train = {"shards": shards, "epochs": 2} | changes.get("train", {})
    return work(data, folder, changes | {"train": train}, task=task)


def on(training: Work, trainers: int, *, retries: int = 0) -> Work:
    """The same with so many processes."""
    training.content["runtime"] |= {"trainers": trainers, "retries": retries}
    return training


@pytest.mark.parametrize("changes", CASES)
def test_the_number_of_processes_changes_no_byte(changes: Changes, data: Path, tmp_path: Path) -> None:
    """Stopped with two, it goes on with one, and with four from within the last epoch; nothing of them is left."""
    training = sharded(data, tmp_path, changes)
    epoch = len([step for step, values in training.points if "train_loss" in values]) // 2
    on(training, 2).run(stop=epoch - 1)
    on(training, 1).run(stop=epoch + epoch // 2)
    assert on(training, 4).finish().points == training.points
    assert not active_children()


class Disturbing(Watcher):
    """Kills a training process after a given update; notes where the processes listen."""

    def __init__(self, kill: int) -> None:
        super().__init__()
        self.kill = kill
        self.listens: set[str] = set()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        super().metrics(step, values)
        if step == self.kill and "train_loss" in values:
            process = self.follower()
            for each in (psutil.Process(), process):
                self.listens |= {found.laddr.ip for found in each.net_connections() if found.status == "LISTEN"}
            process.kill()

    def follower(self) -> psutil.Process:
        """The process to kill."""
        return psutil.Process(active_children()[0].pid)


def disturbed(training: Work, kill: int) -> Disturbing:
    watcher = Disturbing(kill)
    train(training.content, training.task, training.data, training.folder / "out", observer=watcher)
    return watcher


def test_a_lost_process_is_started_again_and_changes_no_byte(data: Path, tmp_path: Path) -> None:
    training = on(sharded(data, tmp_path, {}, task="sentiment", shards=2), 2, retries=1)
    watcher = disturbed(training, kill=2)
    assert outputs(tmp_path / "out") == training.undisturbed
    assert [line for line in watcher.lines if "lost" in line] == [
        "warning: a training process was lost at step 3: starting another"
    ]
    assert watcher.listens and watcher.listens <= {"127.0.0.1", "::1"}, "reachable from other machines"
    on(training, 2, retries=0)
    with pytest.raises(UserError, match=r"a training process was lost at step 4 \(.*lower runtime.trainers") as lost:
        disturbed(training, kill=3)
    assert "\n" not in str(lost.value)
    assert not active_children()


class Full(Line):
    """Runs out of memory with more than two rows, but not in the process that is given."""

    def __init__(self, spared: int) -> None:
        super().__init__()
        self.spared = spared

    def loss(self, rows: Ids) -> BatchLoss:
        if len(rows) > 2 and os.getpid() != self.spared:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return super().loss(rows)

    def batches(self, epoch: int) -> Sequence[Ids]:
        return [np.arange(8)]


def opened(kind: Callable[[int], Line], argument: int, settings: TrainParams) -> Opened:
    config = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False, portable=False)  # any section
    return Opened(trainable=kind(argument), config=config, params=settings, compute=CPU, truncated=0)


@pytest.mark.parametrize(
    ("kind", "argument", "changes", "said"),
    [
        (Faulty, 1, {"non_finite": "skip"}, "the loss or a gradient is not finite at step 2: skipped"),
        (Full, None, {"out_of_memory": "halve"}, "out of memory: every batch is split into 2 from now on"),
    ],
)
def test_what_to_do_with_trouble_is_decided_together(
    kind: Callable[[int], Line], argument: int | None, changes: dict[str, Any], said: str
) -> None:
    """Also where only another process has it."""
    settings, given = params(shards=2, epochs=2, **changes), os.getpid() if argument is None else argument
    alone = fit(kind(0 if argument is None else argument), settings, CPU, log_every=1, observer=Watcher())
    watcher, opening = Watcher(), partial(opened, kind, given, settings)
    with Processes(2, opening, CPU, retries=0, observer=watcher) as team:
        shared = fit(kind(given), settings, CPU, log_every=1, observer=watcher, team=team)
    assert torch.equal(shared.state["weight"], alone.state["weight"])
    assert (shared.skipped, shared.history) == (alone.skipped, alone.history)
    assert shared.pieces == (2 if kind is Full else 1)
    assert f"warning: {said}" in watcher.lines


def test_a_process_that_does_not_come_is_lost_soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As one that was killed after it had opened the run."""
    monkeypatch.setattr("transformer.training.group._MEETING", timedelta(seconds=0.3))
    start = lambda size, opening, stack: str(tmp_path / "meeting")  # noqa: E731
    settings = params(shards=2)
    with (
        Processes(2, partial(opened, Faulty, 9, settings), CPU, retries=0, observer=Watcher(), start=start) as team,
        pytest.raises(UserError, match="a training process was lost at step 1"),
    ):
        fit(Faulty(9), settings, CPU, log_every=1, observer=Watcher(), team=team)


def test_trouble_of_all_ends_in_its_own_line() -> None:
    settings = params(shards=2)
    with (
        Processes(2, partial(opened, Faulty, 1, settings), CPU, retries=3, observer=Watcher()) as team,
        pytest.raises(UserError, match=r"not finite at step 2 \(epoch 1, update 2\)"),
    ):
        fit(Faulty(1), settings, CPU, log_every=1, observer=Watcher(), team=team)
    assert not active_children()


def test_a_process_that_would_run_other_code_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an edit between the start of the stage and that of the process: its part would be another model's."""
    monkeypatch.setattr("transformer.training.team.own_code", lambda: "the leader's")
    settings = params(shards=2)
    with (
        Processes(2, partial(opened, Faulty, 9, settings), CPU, retries=3, observer=Watcher()) as team,
        pytest.raises(UserError, match="the code changed while the stage ran: run it again"),
    ):
        fit(Faulty(9), settings, CPU, log_every=1, observer=Watcher(), team=team)
    assert not active_children()


STARTED = """
import os, sys, pickle
from pathlib import Path
from multiprocessing import active_children
from tests.training.small import train
from transformer.core.observer import Observer

class Telling(Observer):
    def metrics(self, step, values):
        print(*(child.pid for child in active_children()), flush=True)

if __name__ == "__main__":
    content, task, data, root = pickle.loads(sys.stdin.buffer.read())
    train(content, task, data, root, observer=Telling())
"""


@pytest.mark.stress
def test_processes_end_with_a_leader_that_is_killed(data: Path, tmp_path: Path) -> None:
    content = smoke("sentiment", {"train": {"shards": 2, "epochs": 500, "batch_size": 20}})
    content["runtime"] |= {"trainers": 2, "log_every": 1}
    (tmp_path / "started.py").write_text(STARTED)
    command = [sys.executable, str(tmp_path / "started.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, cwd=ROOT, env=environment) as leader:
        assert leader.stdin and leader.stdout
        leader.stdin.write(pickle.dumps((content, "sentiment", data / "sentiment", tmp_path / "out")))
        leader.stdin.close()
        others = [psutil.Process(int(each)) for each in leader.stdout.readline().split()]
        assert others
        leader.kill()
    _, alive = psutil.wait_procs(others, timeout=30)
    assert not alive


def test_other_shards_are_another_result(data: Path, tmp_path: Path) -> None:
    results = [sharded(data, tmp_path / str(shards), {"train": {"epochs": 1}}, shards=shards) for shards in (1, 2)]
    one, two = (result.undisturbed["models/translation/trained/model.safetensors"] for result in results)
    assert one != two


@pytest.mark.parametrize(
    ("runtime", "training", "message"),
    [
        ({"trainers": 3}, {"shards": 4}, r"runtime.trainers \(3\) must divide train.shards \(4\)"),
        ({}, {"shards": 6}, r"shards \(6\) must be a power of 2"),
    ],
)
def test_shards_and_trainers_that_do_not_fit_are_one_line(
    runtime: dict[str, int], training: dict[str, int], message: str, tmp_path: Path
) -> None:
    content = smoke("sentiment", {"train": training})
    content["runtime"] |= runtime
    with pytest.raises(UserError, match=message):
        train(content, "sentiment", tmp_path, tmp_path, observer=Watcher())


def leaves(shards: int) -> list[list[Tensor]]:
    """Gradients of such different sizes that every order of sums has its own bits."""
    generator = torch.Generator().manual_seed(shards)
    return [[torch.randn(257, generator=generator) * 10.0 ** (number % 7)] for number in range(shards)]


def tree(parts: list[list[Tensor]]) -> Tensor:
    total = TreeSum()
    for part in parts:
        total.add([tensor.clone() for tensor in part])
    (tensor,) = total.total()
    return tensor


@pytest.mark.parametrize("shards", [1, 2, 4, 8, 16, 64])
def test_the_trees_sum_is_the_same_for_every_number_of_workers(shards: int) -> None:
    parts = leaves(shards)
    whole = tree(parts)
    for workers in (2**power for power in range(shards.bit_length())):
        each = shards // workers
        subtrees = [[tree(parts[start : start + each])] for start in range(0, shards, each)]
        assert torch.equal(tree(subtrees), whole)
    if shards > 2:
        one_by_one = parts[0][0].clone()
        for (part,) in parts[1:]:
            one_by_one += part
        assert not torch.equal(one_by_one, whole), "any order would do: the test shows nothing"


def test_parts_have_every_row_once_and_in_order() -> None:
    batches = [np.arange(10), np.arange(10, 13)]
    parts = cut(batches, 4)
    assert [[rows.tolist() for rows in part] for part in parts] == [
        [[0, 1, 2], [10]],
        [[3, 4, 5], [11]],
        [[6, 7], [12]],
        [[8, 9]],
    ]


def test_every_part_of_every_update_has_its_own_draws() -> None:
    draws = set()
    for seed in (1, 2):
        for step in (1, 2, 3):
            for part in (0, 1):
                seed_part(seed, step, part)
                draws.add(torch.rand(()).item())
    assert len(draws) == 12
    seed_part(2, 3, 1)
    assert torch.rand(()).item() in draws
