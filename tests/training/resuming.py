"""Small training runs that are stopped and resumed."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.training.small import outputs, prepare, smoke, train
from transformer.core.observer import Observer

Changes = dict[str, dict[str, Any]]
DATA: Changes = {
    "download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}},
    "tokenize": {"kind": "none"},
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.2},
}
TRAINING: dict[str, Any] = {"epochs": 3, "batch_size": 20, "patience": None, "learning_rate": 0.01}


@dataclass
class Watcher(Observer):
    """Records what is reported to it, and sends this process a signal after a given update."""

    stop: int | None = None
    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.points.append((step, {name: value for name, value in values.items() if "second" not in name}))
        if step == self.stop and "train_loss" in values:
            os.kill(os.getpid(), signal.SIGTERM)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def memory(self) -> Any:
        return self.points

    def resume(self, step: int, memory: Any) -> None:
        self.points = [(step, values) for step, values in memory]


@dataclass(frozen=True)
class Work:
    """A small training run, and its outputs when nothing interrupts it."""

    content: dict[str, Any]
    data: Path
    folder: Path
    undisturbed: dict[str, bytes]
    points: list[tuple[int, dict[str, float]]]

    @property
    def states(self) -> Path:
        """The folder of its states."""
        return self.folder / "states"

    def run(self, *, stop: int | None = None, ends: str = "run it again", **params: Any) -> Watcher:
        """Train, with a signal after update `stop`."""
        watcher = Watcher(stop)
        task = self.content["translation"]
        content = {**self.content, "translation": task | {"train": task["train"] | params}}
        if stop is None:
            train(content, "translation", self.data, self.folder / "out", observer=watcher, states=self.states)
        else:
            with pytest.raises(KeyboardInterrupt, match=f"stopped after step {stop}; {ends}"):
                train(content, "translation", self.data, self.folder / "out", observer=watcher, states=self.states)
        return watcher

    def finish(self) -> Watcher:
        """Train to the end and compare the outputs."""
        watcher = self.run()
        assert outputs(self.folder / "out") == self.undisturbed
        return watcher


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare(smoke("translation", DATA), "translation", folder)
    return folder


def work(data: Path, folder: Path, changes: Changes) -> Work:
    content = smoke("translation", changes | {"train": TRAINING | changes.get("train", {})})
    content["runtime"] |= {"log_every": 1, "save_every": 1000}
    watcher = Watcher()
    train(content, "translation", data, folder / "undisturbed", observer=watcher)
    return Work(content, data, folder, outputs(folder / "undisturbed"), watcher.points)
