"""The repository that comparisons start from."""

import subprocess
from pathlib import Path

import pytest

from tests.kit import git
from tests.workflow.comparing import BAD, GOOD, write_result


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
