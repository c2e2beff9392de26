"""The same commit and parameters give the same bytes at another path and without a network."""

import sys
from pathlib import Path

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import STAGES, TASKS
from tests.training.small import outputs
from transformer.core.params import read_params

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


@pytest.fixture(scope="module")
def reproduced(elsewhere: Clone) -> Clone:
    """The other clone after its own run of the whole workflow."""
    assert len(elsewhere.repro()) == len(STAGES) * len(TASKS)
    return elsewhere


def test_two_clones_give_the_same_lock_and_the_whole_workflow_needs_no_network(
    workflow: Clone, reproduced: Clone
) -> None:
    assert (workflow.root / "dvc.lock").read_bytes() == (reproduced.root / "dvc.lock").read_bytes()
    for folder in ("data", "models", "reports"):
        expected, found = (
            {name: content for name, content in outputs(clone.root / folder).items() if not name.endswith(".html")}
            for clone in (workflow, reproduced)  # a page names its result's commit
        )
        assert found == expected


def test_nothing_is_left_but_what_git_and_dvc_know(workflow: Clone, reproduced: Clone) -> None:
    new = {line[3:] for line in reproduced.run("git", "status", "--porcelain").stdout.splitlines()}
    assert {Path(name).parts[0] for name in new} <= {"dvc.lock", "params.yaml", "reports"}


def test_exponents_given_with_s_arrive_as_floats(workflow: Clone, reproduced: Clone) -> None:
    reproduced.commit("result")
    reproduced.run("dvc", "exp", "run", "-S", "translation.train.learning_rate=1e-6", "download@translation")
    value = read_params(reproduced.params)["translation"]["train"]["learning_rate"]
    assert isinstance(value, float)
    assert value == 1e-6
    reproduced.run("transformer", "check", "params.yaml")


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
