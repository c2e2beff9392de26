"""The workflow killed and restarted."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL

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


def test_a_workflow_that_is_killed_ends_with_the_same_lock(expected: Clone, tmp_path: Path) -> None:
    """At any moment, and while it trains."""
    clone = make_clone(tmp_path / "clone")
    clone.change(SETTINGS)
    states = clone.root / ".dvc" / "tmp" / "resume" / "translation"
    due = time.monotonic() + random.uniform(1, 5)
    killed(clone, lambda: time.monotonic() > due)
    killed(clone, lambda: any(states.glob("*/*.safetensors")))
    assert "resuming after step" in clone.run("dvc", "repro", TRAIN).stderr
    assert (clone.root / "dvc.lock").read_bytes() == (expected.root / "dvc.lock").read_bytes()
    for folder in ("models", "reports"):
        assert outputs(clone.root / folder) == outputs(expected.root / folder)


def killed(clone: Clone, when: Callable[[], bool]) -> None:
    """Run the workflow, and kill its whole process group at a moment."""
    process = subprocess.Popen(
        ("dvc", "repro", TRAIN), cwd=clone.root, env=clone.environment, start_new_session=True, stderr=DEVNULL
    )
    until(when, process, seconds=300)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
