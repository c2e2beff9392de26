"""The example from start to end runs as it stands."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import Clone, clone_at


@pytest.mark.stress  # it trains once more
def test_the_tour_runs_on_a_finished_workflow(workflow: Clone, tmp_path: Path) -> None:
    clone = clone_at(Path(shutil.copytree(workflow.root, tmp_path / "clone", symlinks=True)), warm=True)
    printed = clone.run("python", "examples/tour.py").stdout
    assert "cross_attention" in printed
    assert (clone.root / "build/tour/cross_attention.svg").is_file()
    assert "label_smoothing" in printed.rpartition("Ran experiment")[2]
    assert clone.run("git", "status", "--porcelain").stdout == ""
