"""The store's lock."""

import os
from pathlib import Path

import pytest
from filelock import Timeout

from transformer.tracking import store
from transformer.tracking.store import locked, quiet_mlflow, uploading


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


@pytest.mark.parametrize(("given", "while_uploading"), [(None, "600"), ("20", "20")])
def test_a_model_has_more_time_than_a_question_unless_the_user_says_how_long(
    given: str | None, while_uploading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow reads the variable at each request."""
    name = "MLFLOW_HTTP_REQUEST_TIMEOUT"
    monkeypatch.delenv(name, raising=False)
    if given:
        monkeypatch.setenv(name, given)
    quiet_mlflow()
    before = os.environ[name]
    with uploading():
        assert os.environ[name] == while_uploading
    assert os.environ[name] == before == (given or "10")
    monkeypatch.delenv(name)
