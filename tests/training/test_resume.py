"""An interrupted training run resumes, and its result is byte-identical to an uninterrupted one's."""

import os
import resource
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import TRAIN
from tests.training.golden import RECURRENT
from tests.training.small import outputs, prepare, smoke, train
from tests.training.test_loop import CPU, Line
from transformer.core.code import code_at_start
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import open_task, stage_code
from transformer.training.config import TrainParams
from transformer.training.identity import training_key
from transformer.training.loop import Fitted, fit
from transformer.training.resume import Resume, interrupts_held_back
from transformer.training.states import read_state, saved_states

Changes = dict[str, dict[str, Any]]
DATA: Changes = {
    "download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}},
    "tokenize": {"kind": "none"},
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300, "bpe_dropout": 0.2},
}
TRAINING: dict[str, Any] = {"epochs": 3, "batch_size": 20, "patience": None, "learning_rate": 0.01}
UPDATES = 6  # per epoch


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
    """A small training run of a task, and its outputs when nothing interrupts it."""

    content: dict[str, Any]
    task: str
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
        task = self.content[self.task]
        content = {**self.content, self.task: task | {"train": task["train"] | params}}
        if stop is None:
            train(content, self.task, self.data, self.folder / "out", observer=watcher, states=self.states)
        else:
            with pytest.raises(KeyboardInterrupt, match=f"stopped after step {stop}; {ends}"):
                train(content, self.task, self.data, self.folder / "out", observer=watcher, states=self.states)
        return watcher

    def finish(self) -> Watcher:
        """Train to the end and compare the outputs."""
        watcher = self.run()
        assert outputs(self.folder / "out") == self.undisturbed
        return watcher


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare(smoke("translation", DATA), "translation", folder / "translation")
    reviews: Changes = {"download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}}}
    prepare(smoke("sentiment", reviews), "sentiment", folder / "sentiment")
    return folder


def work(data: Path, folder: Path, changes: Changes, *, task: str = "translation") -> Work:
    content = smoke(task, changes | {"train": TRAINING | changes.get("train", {})})
    content["runtime"] |= {"log_every": 1, "save_every": 1000}
    watcher = Watcher()
    train(content, task, data / task, folder / "undisturbed", observer=watcher)
    return Work(content, task, data / task, folder, outputs(folder / "undisturbed"), watcher.points)


CASES: dict[str, dict[str, dict[str, Any]]] = {
    "the best epoch": {},
    "a moving average": {"train": {"averaging": "ema", "ema_decay": 0.9, "clip": None}},
    "the mean of the last epochs": {"train": {"averaging": "last", "average_epochs": 2}},
    "the mean of the best epochs": {"train": {"averaging": "best", "average_epochs": 2, "monitor": "accuracy"}},
    "token batches, accumulation": {"train": {"batch_unit": "tokens", "batch_size": 300, "accumulation": 2}},
    "AdamW, cosine, R-Drop, word dropout": {
        "train": {
            "optimizer": "adamw",
            "weight_decay": 0.1,
            "schedule": "cosine",
            "r_drop": 1.0,
            "word_dropout": 0.2,
        },
        "model": {"attention_dropout": 0.1, "activation_dropout": 0.1, "tie_embeddings": "all"},
    },
    "a recurrent model, its own words": {"model": RECURRENT | {"teacher_forcing": 0.5}},
}


@pytest.mark.parametrize(
    "name",
    # Its state is that of the mean of the last epochs: a model per epoch.
    [pytest.param(name, marks=pytest.mark.stress if name == "the mean of the best epochs" else ()) for name in CASES],
)
def test_a_stopped_training_ends_with_the_same_bytes(name: str, data: Path, tmp_path: Path) -> None:
    """Interrupted within the second epoch, at its last update, and within the third."""
    training = work(data, tmp_path, CASES[name])
    epoch = len([step for step, values in training.points if "train_loss" in values]) // 3
    for stop in (epoch + 2, 2 * epoch, 2 * epoch + 1):
        training.run(stop=stop)
    assert training.finish().points == training.points
    assert not list(training.states.iterdir())


def test_a_classifier_out_of_patience_ends_with_the_same_bytes(data: Path, tmp_path: Path) -> None:
    """The counter of epochs without improvement is part of the state."""
    settings: dict[str, Any] = {"epochs": 9, "patience": 2, "monitor": "accuracy", "learning_rate": 1e-30}
    training = work(data, tmp_path, {"train": settings}, task="sentiment")
    assert len(training.undisturbed["reports/sentiment/history.tsv"].splitlines()) == 4
    training.run(stop=UPDATES + 1)
    training.run(stop=3 * UPDATES)  # the validation after it ends training, and is repeated
    assert training.finish().lines.count("no better validation_accuracy for 2 epochs: stopped") == 1


@pytest.mark.parametrize("averaging", ["none", "ema"])
def test_the_best_epoch_so_far_is_part_of_the_state(averaging: str, tmp_path: Path) -> None:
    """The second of four epochs is the best; interrupted within the third, of two updates."""
    settings = TrainParams(**(TRAIN | {"epochs": 9, "patience": 2, "averaging": averaging}))

    def run(figures: list[float], stop: int | None = None) -> Fitted:
        watcher = Watcher(stop)
        with Resume(tmp_path / "key", 1000, watcher) as resume:
            return fit(Line(figures), settings, CPU, log_every=1, observer=watcher, resume=resume)

    expected = fit(Line([3.0, 1.0, 2.0, 2.0]), settings, CPU, log_every=1, observer=Observer())
    with pytest.raises(KeyboardInterrupt):
        run([3.0, 1.0], stop=5)
    fitted = run([2.0, 2.0])
    assert fitted.history == expected.history and expected.history.best == 1
    assert fitted.state["weight"].item() == expected.state["weight"].item()


@pytest.fixture(scope="module")
def short(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """A training run of two epochs."""
    return work(data, tmp_path_factory.mktemp("short"), {"train": {"epochs": 2}})


@pytest.fixture
def stopped(short: Work, tmp_path: Path) -> Work:
    """The same, interrupted twice."""
    training = replace(short, folder=tmp_path, content={**short.content})
    training.run(stop=3)
    training.run(stop=8)
    return training


def newest(training: Work) -> list[Path]:
    (folder,) = training.states.iterdir()
    return saved_states(folder)


def test_two_generations_stay(stopped: Work) -> None:
    stopped.run(stop=10)
    assert [read_state(path)["step"] for path in newest(stopped)] == [10, 8]


@pytest.mark.parametrize("fault", ["truncated", "one bit", "empty"])
def test_a_broken_state_is_said_and_the_one_before_is_taken(stopped: Work, fault: str) -> None:
    path = newest(stopped)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    faults = {"truncated": content[:-1], "one bit": content, "empty": bytearray()}
    path.write_bytes(faults[fault])
    watcher = stopped.finish()
    assert [line for line in watcher.lines if "warning" in line] == [
        f"warning: {path} is corrupt: falling back to the previous checkpoint, if any"
    ]
    assert watcher.points == stopped.points


def test_without_a_whole_state_training_starts_from_the_beginning(stopped: Work) -> None:
    for path in newest(stopped):
        path.write_bytes(b"")
    assert len([line for line in stopped.finish().lines if "is corrupt" in line]) == 2


@pytest.mark.parametrize("change", ["parameters", "inputs", "code", "threads"])
def test_a_state_of_another_training_is_never_taken(
    stopped: Work, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in newest(stopped)}
    rate = 0.02 if change == "parameters" else TRAINING["learning_rate"]
    sampling = stopped.data / "vocab" / "sampling.json"
    written = sampling.read_bytes()
    if change == "inputs":
        sampling.write_bytes(written + b"\n")
    elif change == "code":
        changed = {**code_at_start()} | {"transformer/training/loop.py": "another"}
        monkeypatch.setattr("transformer.core.code.code_at_start", lambda: changed)
    elif change == "threads":
        monkeypatch.setitem(stopped.content, "hardware", stopped.content["hardware"] | {"threads": 2})
    try:
        assert stopped.run(stop=2, learning_rate=rate).lines[0] == "train: 120 pairs"
    finally:
        sampling.write_bytes(written)
    assert before == {path: path.read_bytes() for path in before}
    assert len(list(stopped.states.iterdir())) == 2


def test_only_the_given_code_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage gives what dvc.yaml declares: code that other processes or engines load changes no byte."""
    content = smoke("sentiment", {})
    params = stage_params(content, "sentiment", stage_code(open_task("sentiment"), "train").Params, where=Path("smoke"))

    def key() -> str:
        return training_key(params, CPU, [], ["transformer/training", "stages/train.py"])

    before, before_edit = key(), code_at_start()
    for path, counts in (
        ("transformer/training/loop.py", True),
        ("stages/train.py", True),
        ("transformer/cli.py", False),
        ("transformer/training_elsewhere.py", False),
    ):
        monkeypatch.setattr("transformer.core.code.code_at_start", lambda path=path: {**before_edit, path: "another"})
        assert (key() != before) == counts, path


def test_states_of_other_trainings_are_pruned(stopped: Work) -> None:
    for number in range(6):
        stopped.run(stop=1, learning_rate=0.02 + number)
    assert len(list(stopped.states.iterdir())) == 4
    assert stopped.finish().points == stopped.points  # from the beginning
    assert len(list(stopped.states.iterdir())) == 3


def test_a_full_disk_is_a_warning_and_training_goes_on(stopped: Work) -> None:
    """Limit the size of files, so that writing raises OSError, as on a full disk."""
    before = newest(stopped)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        watcher = stopped.run(stop=10, ends="its checkpoint could not be saved")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (line,) = [line for line in watcher.lines if "warning" in line]
    assert line.startswith("warning: no checkpoint saved, training continues: cannot write ")
    assert line.endswith("File too large; free some disk space or fix the permissions")
    assert newest(stopped) == before
    assert not list(before[0].parent.glob(".*"))
    assert stopped.finish().points == stopped.points


def test_a_second_signal_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)  # background jobs of a shell ignore it
    with pytest.raises(KeyboardInterrupt), interrupts_held_back() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_while_the_results_are_written_is_not_lost(tmp_path: Path) -> None:
    with Resume(tmp_path / "key", 1000, Observer()) as resume:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt, match="stopped; run it again"):
            resume.finish()


def test_with_0_seconds_nothing_is_saved_and_signals_are_left_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with Resume(tmp_path / "key", 0, Observer()) as resume:
        resume.checkpoint(1, lambda: {})
        assert signal.getsignal(signal.SIGINT) is before
    assert not list(tmp_path.iterdir())


def test_saving_never_takes_more_than_a_fortieth_of_the_time(tmp_path: Path) -> None:
    """A slow state: its tensors take a while."""
    made = []

    def state() -> dict[str, float]:
        time.sleep(0.02)
        made.append(time.monotonic())
        return {"value": 1.0}

    with Resume(tmp_path / "key", 1e-9, Observer()) as resume:
        started = time.monotonic()
        while time.monotonic() < started + 1.0:
            resume.checkpoint(1, state)
    assert 1 <= len(made) <= 2
