"""The workflow killed and restarted, and on a full disk."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import STAGES, TASKS
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


def test_killed_between_two_stages(workflow: Clone, tmp_path: Path) -> None:
    """The next run begins with the stage that was killed at its start, and the outputs are unaffected."""
    clone, kills = make_clone(tmp_path / "clone", PYTHONUNBUFFERED="1"), 4
    for _ in range(kills):
        assert len(killed_at_the_second_stage(clone)) == 2
    assert len(clone.repro()) == len(STAGES) * len(TASKS) - kills
    assert (clone.root / "dvc.lock").read_bytes() == (workflow.root / "dvc.lock").read_bytes()
    clone.run("transformer", "sync")
    assert clone.repro() == []


def killed_at_the_second_stage(clone: Clone) -> list[str]:
    """Run the workflow until its second stage begins, then kill its process group; returns the stages that began."""
    begun = []
    with clone.start("dvc", "repro", stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Running stage '"):
                begun.append(line.split("'")[1])
            if len(begun) == 2:
                os.killpg(process.pid, signal.SIGKILL)
                break
    return begun


def test_an_experiment_in_a_temporary_clone_goes_on(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
    clone.change(SETTINGS | {"translation.train.epochs": 90})
    clone.repro("build_vocab@translation")
    clone.commit("start")
    command = ("dvc", "exp", "run", "--temp", "-S", "translation.train.seed=2", TRAIN)
    states = clone.root / ".dvc" / "tmp" / "resume" / "translation"
    process = subprocess.Popen(command, cwd=clone.root, env=clone.environment, start_new_session=True)
    while not list(states.glob("*/*.safetensors")):
        time.sleep(0.05)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = clone.run(*command)
    assert "resuming after step" in done.stderr + done.stdout
    assert not list(states.iterdir())


def test_a_full_file_system_costs_one_line_and_no_output_is_half(expected: Clone, tmp_path: Path) -> None:
    """File systems of several sizes, each in its own namespace, which needs no privileges if the kernel allows it."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this system lets users make no namespaces")
    whole = written(expected.root)
    largest = max(len(content) for content in whole.values())
    ends = [on_small_disk(expected, tmp_path / str(share), int(share * largest)) for share in (0.5, 1.1, 2, 20)]
    for code, files, errors in ends:
        assert all(whole[name] == content for name, content in files.items())
        if code:
            assert errors[-1].startswith("error: train@translation: cannot write ")
            assert "No space left on device; free some disk space" in errors[-1]
        else:
            assert files == whole
    assert [code for code, _, _ in ends] == [1, 1, 0, 0]
    warned = [any("warning: no checkpoint saved" in line for line in errors) for _, _, errors in ends]
    assert warned == [True, True, True, False]


def on_small_disk(clone: Clone, folder: Path, size: int) -> tuple[int, dict[str, bytes], list[str]]:
    """Train on a file system of `size` bytes; returns the exit status, the existing outputs and the printed lines."""
    (folder / "small").mkdir(parents=True)
    script = f"""
        mount -t tmpfs -o size={size} none small && cd small
        ln -s {clone.root}/data data && sed "s/tracking: true/tracking: false/" {clone.root}/params.yaml > params.yaml
        {sys.executable} -m stages.train translation 2>../error; code=$?
        cp -a . ../after; exit $code
    """
    environment = clone.environment | {"PYTHONPATH": str(clone.root)}
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=folder, env=environment, check=False)
    return done.returncode, written(folder / "after"), (folder / "error").read_text().splitlines()


def written(root: Path) -> dict[str, bytes]:
    """The outputs of training."""
    return {
        name: content
        for name, content in outputs(root).items()
        if name.startswith(
            ("models/translation/trained", "reports/translation/training", "reports/translation/history")
        )
    }
