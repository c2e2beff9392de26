"""Where the store is, for every way to specify one."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.tracking.conftest import environment, run_in
from transformer.core.errors import UserError
from transformer.tracking.location import locate
from transformer.tracking.store import locked, open_store

ODD = "50% of a?b #c é"


def uri(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", value)


def test_without_an_address_it_is_in_the_root(root: Path) -> None:
    location = locate(root)
    assert location.uri == f"sqlite:///{root}/mlflow.db"
    assert (location.database, location.artifacts) == (root / "mlflow.db", (root / "mlartifacts").as_uri())


@pytest.mark.parametrize(
    ("given", "database"),
    [
        ("sqlite:///store/x.db", "repository/store/x.db"),
        ("sqlite:///../x.db", "x.db"),
        ("sqlite:///a%3Fb%20c.db?timeout=5", "repository/a?b c.db"),
        ("sqlite+pysqlite:///50%.db", "repository/50%.db"),
    ],
)
def test_a_relative_database_is_the_repositorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, database: str
) -> None:
    """Neither in the working directory nor in a temporary clone; artifacts are beside it."""
    uri(monkeypatch, given)
    location = locate(tmp_path / "repository")
    assert location.database == tmp_path / database
    assert location.artifacts == (tmp_path / database).with_name("mlartifacts").as_uri()
    assert location.uri.endswith("?timeout=5") == given.endswith("?timeout=5")


@pytest.mark.parametrize("given", ["mlruns", "./mlruns", "file:mlruns", "file:./mlruns"])
def test_a_relative_folder_is_the_repositorys(root: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    uri(monkeypatch, given)
    assert locate(root).uri == (root / "mlruns").as_uri()
    assert locate(root).artifacts is None


@pytest.mark.parametrize(
    "given", ["http://127.0.0.1:5000", "https://user:word@host/mlflow", "databricks", "postgresql://host/base"]
)
def test_a_server_is_taken_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    uri(monkeypatch, given)
    assert locate(root).uri == given
    assert locate(root).artifacts is None
    assert "word" not in str(locate(root))


@pytest.mark.parametrize("given", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file:x?uri=true"])
def test_what_names_no_file_is_one_line(root: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    uri(monkeypatch, given)
    with pytest.raises(UserError, match="does not name a database file"):
        open_store(root, "translation")


def test_an_unquoted_question_mark_is_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the path would end there, and the results would go to another file."""
    uri(monkeypatch, f"sqlite:///{root}/wh?t/x.db")
    with pytest.raises(UserError, match="%3F"):
        open_store(root, "translation")
    assert [path.name for path in root.iterdir()] == [".dvc"]


def test_a_database_without_a_place_for_artifacts_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would land in the working directory, which may be a temporary clone."""
    from transformer.tracking import store

    uri(monkeypatch, "postgresql://user:word@host/base")
    with pytest.raises(UserError, match=r"postgresql://\*\*\*@host/base has no place for artifacts"):
        store._check_place(locate(root), "translation")


def test_a_path_with_odd_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database and its artifacts are in that folder, and nothing is anywhere else."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    root = tmp_path / ODD
    (root / ".dvc").mkdir(parents=True)
    store = open_store(root, "translation")
    run = store.client.create_run(store.experiment_id).info.run_id
    store.client.log_text(run, "text", "reports/x.txt")
    assert (root / "mlartifacts" / run / "artifacts/reports/x.txt").read_text() == "text"
    assert [path.name for path in tmp_path.iterdir()] == [ODD]
    with sqlite3.connect(root / "mlflow.db") as database:
        assert database.execute("SELECT run_uuid FROM runs").fetchall() == [(run,)]
    code = "from transformer.tracking.store import open_store; from pathlib import Path; "
    code += "print(len(open_store(Path.cwd(), 'translation').client.search_runs(['1'])))"
    env = environment() | {"MLFLOW_TRACKING_URI": locate(root).uri}  # as passed on to another clone
    done = subprocess.run(["python", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_all_who_name_a_database_meet_at_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone by default, another by its path, a third by a relative path, a fourth through a link."""
    from filelock import Timeout

    from transformer.tracking import store

    monkeypatch.setattr(store, "_LOCK_SECONDS", 0.1)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "link").symlink_to(here)
    with locked(here):
        for given in (
            f"sqlite:///{here}/mlflow.db",
            "sqlite:///../here/mlflow.db",
            f"sqlite:///{tmp_path}/link/mlflow.db",
        ):
            uri(monkeypatch, given)
            with pytest.raises(Timeout), locked(tmp_path / "there"):
                pass


def test_a_moved_file_store_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri(monkeypatch, "before")
    open_store(root, "translation")
    (root / "before").rename(root / "after")
    uri(monkeypatch, "after")
    with pytest.raises(UserError, match="moved or copied"):
        open_store(root, "translation")
    assert not (root / "before").exists()


@pytest.mark.parametrize(
    "given",
    ["sqlite:///store/x.db", *(pytest.param(each, marks=pytest.mark.stress) for each in ("sqlite:///x.db", "runs"))],
)
def test_a_temporary_clone_writes_into_the_repositorys_store(
    dvc_repository: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """A relative address: DVC removes the clone with everything in it when the experiment ends."""
    from mlflow.tracking import MlflowClient

    (dvc_repository / "mlflow.db").unlink()
    env = {"MLFLOW_TRACKING_URI": given, "MLFLOW_ALLOW_FILE_STORE": "true"}
    change = "translation.train.learning_rate=1e-2"
    command = ("dvc", "exp", "run", "--temp", "--name", "warm", "--set-param", change, "report@translation")
    assert "tracking:" not in run_in(dvc_repository, *command, env=env)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    uri = locate(dvc_repository).uri
    assert str(dvc_repository) in uri
    client = MlflowClient(uri, uri)
    (experiment,) = (each for each in client.search_experiments() if each.name == "translation")
    (row,) = client.search_runs([experiment.experiment_id], "tags.kind = 'result'")
    assert (row.info.run_name, row.info.status) == ("warm", "FINISHED")
    assert row.info.artifact_uri.startswith(dvc_repository.as_uri())
    assert Path(client.download_artifacts(row.info.run_id, "reports/report.html")).is_file()
    assert not (dvc_repository / "mlflow.db").exists()
