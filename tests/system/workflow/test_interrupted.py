"""The workflow killed and restarted."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import until
from tests.training.small import outputs

SETTINGS = {
    "translation.download.sample_rows": {"train": 800, "validation": 20, "test": 10},
    "translation.tokenize.kind": "whitespace",
    "translation.train.epochs": 30,
    "translation.train.patience": None,
    "translation.train.averaging": "ema",
    "runtime.save_every": 0.01,
}
TRAIN = "train@translation"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which nothing was killed."""
    clone = make_clone(tmp_path_factory.mktemp("undisturbed") / "clone")
    clone.change(SETTINGS)
    clone.repro(TRAIN)
    return clone


def interrupted(clone: Clone, command: tuple[str, ...], seconds: float, number: int) -> str:
    """Run a command and send its whole process group a signal after some time; returns its output."""
    process = clone.start(*command)
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
        return process.communicate()[0]


def test_a_workflow_that_is_killed_ends_with_the_same_lock(expected: Clone, tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
    clone.change(SETTINGS)
    chance, killed, printed = random.Random(), 0, ""
    for _ in range(5):
        number = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT))
        printed += interrupted(clone, ("dvc", "repro", TRAIN), chance.uniform(2, 8), number)
        killed += not (clone.root / "dvc.lock").exists() or TRAIN not in (clone.root / "dvc.lock").read_text()
    done = clone.run("dvc", "repro", TRAIN)
    assert killed >= 2
    assert "resuming after step" in printed + done.stderr
    assert (clone.root / "dvc.lock").read_bytes() == (expected.root / "dvc.lock").read_bytes()
    for folder in ("models", "reports"):
        assert outputs(clone.root / folder) == outputs(expected.root / folder)


def test_an_experiment_in_a_temporary_clone_goes_on(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
    clone.change(SETTINGS | {"translation.train.epochs": 90})
    clone.repro("build_vocab@translation")
    clone.commit("start")
    command = ("dvc", "exp", "run", "--temp", "-S", "translation.train.seed=2", TRAIN)
    states = clone.root / ".dvc" / "tmp" / "resume" / "translation"
    process = subprocess.Popen(command, cwd=clone.root, env=clone.environment, start_new_session=True)
    until(lambda: [*states.glob("*/*.safetensors")], process, seconds=300)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = clone.run(*command)
    assert "resuming after step" in done.stderr + done.stdout
    assert not list(states.iterdir())
