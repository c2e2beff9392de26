"""Simultaneous training runs leave each other's states alone."""

from pathlib import Path

from transformer.training.resume import prune_others, run_lock


def test_a_training_that_lives_keeps_its_states(tmp_path: Path) -> None:
    """Also one of two that have the same, after the other has ended."""
    folder = tmp_path / "training"
    folder.mkdir()
    with run_lock(folder):
        with run_lock(folder):
            pass
        prune_others(tmp_path / "another", 0)
        assert folder.exists()
    prune_others(tmp_path / "another", 0)
    assert not list(tmp_path.iterdir())
