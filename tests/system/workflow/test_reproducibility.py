"""The same commit and parameters give the same bytes at another path and without a network."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from dvc.utils.serialize import dumps_yaml, parse_yaml_for_update

from tests.conftest import Clone, clone_at, make_clone
from tests.kit import STAGES, TASKS
from tests.training.small import outputs
from transformer.core.params import read_params
from transformer.workflow.pipeline import stages_in_lock

BLOCKER = """
import socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"the test allows no connection to {address}")
    return _connect(self, address)
socket.socket.connect = connect
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone at another path and depth, whose processes can reach only this machine."""
    folder = tmp_path_factory.mktemp("offline")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    clone = make_clone(folder / "a" / "b c" / "other", PYTHONPATH=str(folder), PYTHONHASHSEED="7")
    blocked = clone.run(sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80))", check=False)
    assert "allows no connection" in blocked.stderr
    return clone


TASK = "translation"
"""The one that `make test` repeats; `make stress` repeats all."""
FORKED = """
import os
import sys
from transformer.core.portable import PINS
os.environ.update(PINS)
from transformer.workflow.stage import main
import datasets, matplotlib.pyplot, onnx, onnxruntime, sacrebleu, scipy.stats, tokenizers, torch
for stage in ("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "convert"):
    if not (child := os.fork()):
        main(stage)
        sys.stderr.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, stage
"""


@pytest.fixture(scope="module")
def reproduced(elsewhere: Clone) -> Clone:
    """The other clone after its own run of a task, without tracking, unlike the shared one (workers: tests/engines).

    All stages but `report` are forks of one process, which saves half a minute of importing libraries; DVC then hashes
    what they wrote, and has only the report to run.
    """
    elsewhere.change({"runtime.tracking": False})
    elsewhere.run(sys.executable, "-m", "stages.code", TASK)
    elsewhere.run(sys.executable, "-c", FORKED, TASK)
    elsewhere.run("dvc", "commit", "--force", "--with-deps", f"figures@{TASK}", f"convert@{TASK}")
    assert elsewhere.repro(f"report@{TASK}") == [f"report@{TASK}"]
    return elsewhere


def assert_same(here: Clone, there: Clone, tasks: Sequence[str]) -> None:
    """The same entries of dvc.lock and outputs."""
    mine, other = (stages_in_lock((clone.root / "dvc.lock").read_bytes(), "a clone") for clone in (here, there))
    names = [f"{stage}@{task}" for stage in STAGES for task in tasks]
    assert [mine[name] for name in names] == [other[name] for name in names]
    for folder in (f"{folder}/{task}" for folder in ("data", "models", "reports") for task in tasks):
        expected, found = (outputs(clone.root / folder) for clone in (here, there))
        if folder.startswith("reports"):
            assert expected.pop("report.html") and found.pop("report.html")  # a page names its result's commit
        assert found == expected


def test_two_clones_give_the_same_lock_and_the_whole_workflow_needs_no_network(
    workflow: Clone, reproduced: Clone
) -> None:
    assert_same(workflow, reproduced, [TASK])


def test_the_lock_has_the_bytes_that_dvc_writes(workflow: Clone) -> None:
    """The shared clone's commands are warm, and write it in another way (tests/warm)."""
    text = (workflow.root / "dvc.lock").read_text(encoding="utf-8")
    assert dumps_yaml(parse_yaml_for_update(text, "dvc.lock")) == text


@pytest.mark.stress
def test_dvc_gives_the_same_lock_elsewhere(workflow: Clone, reproduced: Clone) -> None:
    (reproduced.root / "dvc.lock").unlink(missing_ok=True)
    assert len(reproduced.repro("--no-run-cache")) == len(STAGES) * len(TASKS)
    assert_same(workflow, reproduced, TASKS)


def test_nothing_is_left_but_what_git_and_dvc_know(workflow: Clone, reproduced: Clone) -> None:
    new = {line[3:] for line in reproduced.run("git", "status", "--porcelain").stdout.splitlines()}
    assert {Path(name).parts[0] for name in new} <= {"dvc.lock", "params.yaml", "reports"}


@pytest.mark.stress
def test_exponents_given_with_s_arrive_as_floats(workflow: Clone, reproduced: Clone) -> None:
    clone = clone_at(reproduced.root, warm=True)
    clone.commit("result")
    clone.run("dvc", "exp", "run", "-S", "translation.train.learning_rate=1e-6", "download@translation")
    value = read_params(clone.params)["translation"]["train"]["learning_rate"]
    assert isinstance(value, float)
    assert value == 1e-6
    clone.run("transformer", "check", "params.yaml")


def test_verify_computes_the_stages_again_and_names_what_they_did_not_write(workflow: Clone) -> None:
    """Of the twelve that a language model's result needs, one whose scores somebody has changed."""
    scores = workflow.root / "reports/language/evaluation.json"
    workflow.run("git", "checkout", "-q", "--detach")
    scores.write_text(scores.read_text().replace("perplexity", "precision", 1))
    workflow.commit("better")
    try:
        done = workflow.run("transformer", "verify", "--task", "language", check=False)
    finally:
        workflow.run("git", "checkout", "-q", "main")
    assert done.returncode == 1
    assert done.stdout.count("Running stage '") == 12
    assert done.stdout.splitlines()[-1] == "evaluate@language: wrote other reports/language/evaluation.json"
    assert done.stderr.splitlines()[-1] == "error: 1 of 12 stages are not as at HEAD"
