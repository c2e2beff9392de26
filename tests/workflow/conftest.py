"""The repository that comparisons start from, and an empty tracking store."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import git
from tests.workflow.comparing import BAD, GOOD, write_result
from transformer.workflow.mlflow import Store, open_store


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit with one result, and a workspace with another."""
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    write_result(tmp_path, rate=1e-3, module="a" * 32, answers=BAD)
    (tmp_path / ".gitignore").write_text("predictions.tsv\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first | result")
    write_result(tmp_path, rate=5e-3, module="b" * 32, answers=GOOD)
    return tmp_path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the tracking takes for a DVC repository's root; also the working directory."""
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DVC_"))]:
        monkeypatch.delenv(name)
    (tmp_path / ".dvc").mkdir()
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.fixture
def store(root: Path) -> Store:
    """An empty store in its own database."""
    return open_store(root, "sentiment")
