"""Saved states: which one is taken, what is said of a broken one, and when they are written."""

import resource
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.resuming import TRAINING, Work, data, work
from tests.training.small import CODE
from transformer.training.resume import load_checkpoint, prune_others, run_lock, saved_checkpoints

__all__ = ["data"]  # a fixture


@pytest.fixture(scope="module")
def twice(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """A training run of two epochs, interrupted twice."""
    short = work(data, tmp_path_factory.mktemp("short"), {"train": {"epochs": 2}})
    short.run(stop=3)
    short.run(stop=8)
    return short


@pytest.fixture
def stopped(twice: Work, tmp_path: Path) -> Work:
    """A copy for one test."""
    folder = Path(shutil.copytree(twice.folder, tmp_path / "copy"))
    return replace(twice, folder=folder, content={**twice.content})


def newest(training: Work) -> list[Path]:
    (folder,) = training.states.iterdir()
    return saved_checkpoints(folder)


@pytest.mark.parametrize(("broken", "steps"), [(False, [10, 8]), (True, [10, 3])])
def test_two_generations_stay_of_those_that_can_be_read(stopped: Work, broken: bool, steps: list[int]) -> None:
    if broken:
        newest(stopped)[0].write_bytes(b"")
    stopped.run(stop=10)
    assert [load_checkpoint(path)["step"] for path in newest(stopped)] == steps


@pytest.mark.parametrize("fault", ["truncated", "one bit"])
def test_a_broken_state_is_said_and_the_one_before_is_taken(stopped: Work, fault: str) -> None:
    path = newest(stopped)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if fault == "one bit" else content[:-1])
    watcher = stopped.finish()
    (warning,) = [line for line in watcher.lines if "warning" in line]
    assert warning.startswith(f"warning: {path} is corrupt: ")
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
    if change == "inputs":
        stopped = replace(stopped, data=Path(shutil.copytree(stopped.data, stopped.folder / "data")))
        sampling = stopped.data / "vocab" / "sampling.json"
        sampling.write_bytes(sampling.read_bytes() + b"\n")
    elif change == "code":
        monkeypatch.setitem(CODE, "transformer/training/loop.py", "another")
    elif change == "threads":
        monkeypatch.setitem(stopped.content, "hardware", stopped.content["hardware"] | {"threads": 2})
    assert stopped.run(stop=2, learning_rate=rate).lines[0] == "train: 120 pairs"
    assert before == {path: path.read_bytes() for path in before}
    assert len(list(stopped.states.iterdir())) == 2


def test_states_of_other_trainings_are_pruned(stopped: Work) -> None:
    for number in range(6):
        stopped.run(stop=1, learning_rate=0.02 + number)
    assert len(list(stopped.states.iterdir())) == 4
    assert stopped.finish().points == stopped.points  # from the beginning
    assert len(list(stopped.states.iterdir())) == 3


def test_a_training_that_lives_keeps_its_states(tmp_path: Path) -> None:
    """Also one of two that have the same, after the other has ended."""
    folder = tmp_path / "training"
    folder.mkdir()
    with run_lock(folder):
        with run_lock(folder):
            pass
        prune_others(tmp_path / "another", 0)
        assert folder.exists()
    prune_others(tmp_path / "another", 0)
    assert not list(tmp_path.iterdir())


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
