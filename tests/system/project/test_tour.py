"""The example from start to end runs as it stands."""

from pathlib import Path

from tests.conftest import Clone, copied


def test_the_tour_runs_on_a_finished_workflow(workflow: Clone, tmp_path: Path) -> None:
    clone = copied(workflow, tmp_path / "clone")
    printed = clone.run("python", "examples/tour.py").stdout
    assert "cross_attention" in printed
    assert (clone.root / "build/tour/cross_attention.svg").is_file()
    assert "label_smoothing" in printed.rpartition("Ran experiment")[2]
    assert clone.run("git", "status", "--porcelain").stdout == ""
