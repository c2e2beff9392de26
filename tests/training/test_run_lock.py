"""Simultaneous training runs leave each other's states alone."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from transformer.training.resume import _is_locked, prune_others, run_lock


def test_a_training_that_ends_while_others_are_looked_at_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    is_dir = Path.is_dir

    def ends_then(path: Path) -> bool:
        found = is_dir(path)
        if path.name == "two" and found:
            path.rmdir()
        return found

    monkeypatch.setattr(Path, "is_dir", ends_then)
    prune_others(tmp_path / "four", 1)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_training_that_is_taken_up_while_others_are_looked_at_keeps_its_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "training"
    folder.mkdir()
    with ExitStack() as lives:

        def taken_up(path: Path) -> bool:
            found = _is_locked(path)
            lives.enter_context(run_lock(path))
            return found

        monkeypatch.setattr("transformer.training.resume._is_locked", taken_up)
        prune_others(tmp_path / "another", 0)
        assert folder.exists()
    monkeypatch.undo()
    prune_others(tmp_path / "another", 0)
    assert not list(tmp_path.iterdir())


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
