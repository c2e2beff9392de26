"""Clones of the working tree in which the workflow runs as users run it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT as ROOT
from tests.kit import STAGES, TASKS, clean_environment, copy_working_tree, set_leaves
from transformer.commands.profiles import profile_params

# Before torch is loaded: the test processes share the cores, so more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
FIRST = "tests/workflow/test_chain.py"
"""The file that takes longest, so that no process waits for it at the end."""


@dataclass(frozen=True)
class Clone:
    """A clone of the working tree with its own repository, and the profile `smoke` as its params.yaml."""

    root: Path
    environment: dict[str, str]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the virtual environment in the clone."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=1800, check=False
        )
        assert not check or done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def start(self, *command: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """Start it in the background, in its own process group, with its output in a pipe."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def repro(self, *targets: str) -> list[str]:
        """Run `dvc repro`; returns the stages that ran, in order, but for `code`, which always does."""
        output = self.run("dvc", "repro", *targets).stdout
        ran = (line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '"))
        return [name for name in ran if not name.startswith("code@")]

    def change(self, changes: dict[str, Any]) -> None:
        """Set dotted leaves of params.yaml."""
        set_leaves(self.params, changes)

    @property
    def params(self) -> Path:
        """The clone's params.yaml."""
        return self.root / "params.yaml"

    def commit(self, message: str) -> None:
        """Commit everything."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message)


def make_clone(root: Path, **more: str) -> Clone:
    """A committed copy of the working tree; more: variables of its environment."""
    copy_working_tree(root, profile_params(ROOT, "smoke"))
    clone = clone_at(root, **more)
    clone.commit("start")
    return clone


def clone_at(root: Path, **more: str) -> Clone:
    """A repository that already exists."""
    return Clone(root, clean_environment(OMP_NUM_THREADS="1", **more))


def copied(clone: Clone, root: Path, **more: str) -> Clone:
    """A copy of a clone, without the tracking store, which cannot be moved."""
    shutil.copytree(clone.root, root, symlinks=True, ignore=shutil.ignore_patterns("mlflow.db*", "mlartifacts"))
    return clone_at(root, **more)


@pytest.fixture(scope="session")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which the whole workflow has run and is committed. Tests leave it as they found it."""
    clone = make_clone(tmp_path_factory.mktemp("workflow") / "clone")
    assert len(clone.repro()) == len(STAGES) * len(TASKS)
    clone.commit("result")
    return clone


@pytest.fixture
def restored(workflow: Clone) -> Iterator[Clone]:
    """The shared clone without tracking, reset to its commit afterwards."""
    workflow.change({"runtime.tracking": False})
    yield workflow
    workflow.run("git", "checkout", "-q", "--", ".")
    workflow.run("dvc", "checkout", "-q", "--force")


@pytest.fixture(scope="session")
def real_corpora() -> Path:
    """The folder of the real corpora; tests that need it are skipped if it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real corpora are not beside this checkout (../shared/data)")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest file."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
