"""The store's lock."""

from pathlib import Path

import pytest
from filelock import Timeout

from transformer.tracking import store
from transformer.tracking.store import locked


def test_writers_of_one_store_take_turns_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clones and worktrees have their own databases, or one named by the environment."""
    monkeypatch.setattr(store, "_LOCK_SECONDS", 0.1)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    here, there = tmp_path / "here", tmp_path / "there"
    with locked(here), locked(there):
        pass
    with locked(here), pytest.raises(Timeout), locked(here):
        pass
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'shared.db'}")
    with locked(here), pytest.raises(Timeout), locked(there):
        pass
