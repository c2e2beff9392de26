"""Stores that were moved, copied or shared, in real databases."""

import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import transformer
from tests.kit import free_port
from tests.tracking.test_alias import FIRST
from tests.tracking.test_model import Classifier, result_in
from transformer.core.errors import UserError
from transformer.tracking.location import locate
from transformer.tracking.model import log_model, register
from transformer.tracking.moved import recorded_elsewhere
from transformer.tracking.store import Store, open_store
from transformer.tracking.ui import serve


def write(store: Store, text: str) -> str:
    """Create a run with an artifact; returns its id."""
    run = str(store.client.create_run(store.experiment_id).info.run_id)
    store.client.log_text(run, text, "reports/x.txt")
    return run


def read(store: Store, run: str) -> str:
    return Path(store.client.download_artifacts(run, "reports/x.txt")).read_text()


def places(database: Path) -> set[str]:
    """All recorded locations below an artifact folder, by table."""
    found = set()
    with closing(sqlite3.connect(database)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]:
                for (value,) in connection.execute(
                    f"SELECT {column} FROM {table} WHERE {column} LIKE '%/mlartifacts%'"
                ):
                    found.add(f"{table}.{column} {str(value).partition('/mlartifacts')[0]}")
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository whose store has one run with a registered model; also returns the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        root = tmp_path_factory.mktemp("original") / "repository"
        (root / ".dvc").mkdir(parents=True)
        store = open_store(root, "sentiment")
        run = write(store, "first")
        model = log_model(store, run, result_in(root / "result"), "sentiment")
        tags = FIRST.tags() | {"alias": "best"}
        register(store.client, name="reviews", alias="best", tags=tags, run_id=run, model_id=model)
        store.client.create_experiment("someone's", artifact_location=(root.parent / "theirs").as_uri())
    return root, run


@pytest.fixture
def copy(original: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Path(shutil.copytree(original[0], tmp_path / "a b" / "copy"))


def test_a_copied_repository_never_writes_into_the_original(
    original: tuple[Path, str], copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import pyfunc

    root, run = original
    before = contents(root)
    store = open_store(copy, "sentiment")
    assert capsys.readouterr().err.count("\n") == 1
    here = locate(copy).artifacts
    assert here is not None
    base = here.removesuffix("/mlartifacts")
    assert places(copy / "mlflow.db") == {
        f"experiments.artifact_location {base}",
        f"runs.artifact_uri {base}",
        f"logged_models.artifact_location {base}",
        f"model_versions.storage_location {base}",
    }
    new = write(store, "second")
    assert read(store, run) == "first"
    assert (copy / "mlartifacts" / new / "artifacts/reports/x.txt").is_file()
    log_model(store, new, copy / "result", "sentiment")
    assert contents(root) == before

    monkeypatch.setattr(transformer, "load", lambda path, engine: Classifier())
    best = store.client.get_model_version_by_alias("reviews", "best")
    path = store.client.get_model_version_download_uri("reviews", best.version)
    assert path.startswith(here)
    assert list(pyfunc.load_model(path).predict(pd.DataFrame({"text": ["good"]}))["label"]) == ["pos"]

    theirs = store.client.get_experiment_by_name("someone's")
    assert theirs is not None and theirs.artifact_location == (root.parent / "theirs").as_uri()
    open_store(copy, "sentiment")
    assert capsys.readouterr().err == ""


def test_a_moved_repository_finds_its_artifacts(
    original: tuple[Path, str], copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_store(copy, "sentiment")
    moved = tmp_path / "50% é?"
    copy.rename(moved)
    assert recorded_elsewhere(locate(moved))
    store = open_store(moved, "sentiment")
    assert read(store, original[1]) == "first"
    write(store, "second")
    assert not copy.exists()
    assert not recorded_elsewhere(locate(moved))


def test_a_copied_database_brings_its_artifacts(
    original: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is moved alone to a shared place."""
    root, run = original
    before = contents(root)
    shared = tmp_path / "shared"
    shared.mkdir()
    shutil.copy(root / "mlflow.db", shared / "x.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{shared}/x.db")
    store = open_store(root, "sentiment")
    assert read(store, run) == "first"
    assert (shared / "mlartifacts" / run).is_dir()
    assert contents(root) == before


def test_the_ui_is_started_on_the_store_that_the_workflow_writes(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repaired first, since MLflow's own command does not know how."""
    commands: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: commands.append(command))
    monkeypatch.setenv("MLFLOW_BACKEND_STORE_URI", "another")  # set anew, and restored after the test
    serve(copy, free_port())
    assert os.environ["MLFLOW_BACKEND_STORE_URI"] == locate(copy).uri
    assert not any(locate(copy).uri in word for word in commands[0]), "other users see commands, and passwords in them"
    assert not recorded_elsewhere(locate(copy))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:word@host")
    with pytest.raises(UserError, match=r"open http://\*\*\*@host"):
        serve(copy, free_port())
    assert len(commands) == 1


@pytest.mark.parametrize("port", [None, -1, 65536])
def test_a_port_that_is_taken_or_not_allowed_is_one_line(port: int | None, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=r"^port -?\d+ is taken or not allowed: choose another with --port"):
            serve(tmp_path, taken.getsockname()[1] if port is None else port)


def test_two_clones_on_one_database_write_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, first, second = (tmp_path / name for name in ("shared", "first", "second"))
    for clone in (first, second):
        (clone / ".dvc").mkdir(parents=True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{shared}/x.db")
    run = write(open_store(first, "sentiment"), "first")
    new = write(open_store(second, "sentiment"), "second")
    shutil.rmtree(first)
    store = open_store(second, "sentiment")
    assert [read(store, each) for each in (run, new)] == ["first", "second"]
    assert sorted(path.name for path in (shared / "mlartifacts").iterdir()) == sorted([run, new])
    assert [path.name for path in second.iterdir()] == [".dvc"]


def test_a_copy_that_cannot_be_changed_is_refused_in_one_line(
    original: tuple[Path, str], copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(original[0])
    with closing(sqlite3.connect(copy / "mlflow.db")) as connection, connection:
        connection.execute("CREATE TRIGGER no BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'not writable'); END")
    with pytest.raises(UserError, match=r"moved or copied.*not writable") as caught:
        open_store(copy, "sentiment")
    assert "\n" not in str(caught.value)
    assert contents(original[0]) == before
    assert {place.partition(" ")[2] for place in places(copy / "mlflow.db")} == {original[0].as_uri()}


def test_a_place_that_somebody_chose_stays(copy: Path, tmp_path: Path) -> None:
    chosen = (tmp_path / "big disk").as_uri()
    with closing(sqlite3.connect(copy / "mlflow.db")) as connection, connection:
        connection.execute("DELETE FROM runs")
        connection.execute("UPDATE experiments SET artifact_location = ? WHERE name = 'sentiment'", (chosen,))
    store = open_store(copy, "sentiment")
    assert store.client.get_experiment(store.experiment_id).artifact_location == chosen


def test_a_deleted_experiment_is_one_line_that_names_the_command(copy: Path) -> None:
    store = open_store(copy, "sentiment")
    store.client.delete_experiment(store.experiment_id)
    with pytest.raises(
        UserError, match=f"mlflow experiments restore --experiment-id {store.experiment_id}`.*mlflow gc"
    ):
        open_store(copy, "sentiment")
    store.client.restore_experiment(store.experiment_id)
    assert open_store(copy, "sentiment").experiment_id == store.experiment_id
