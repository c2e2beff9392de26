"""Two users, one MLflow server on PostgreSQL and one S3 remote, as deploy/compose.yaml has them: `make stress`."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.tracking.conftest import environment, run_in
from tests.tracking.services import Deployed, Postgres, running
from tests.tracking.test_workflow import SYNC, edit

pytestmark = pytest.mark.stress
NAME = "translation-model"
REVISION = "b7e2c1a4d9f3"
"""The last revision of the database of MLflow 3.16.1, the release before the one that the lock pins."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Postgres, str, Path]]:
    with running(tmp_path_factory.mktemp("services")) as started:
        yield started


@pytest.fixture
def server(services: tuple[Postgres, str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A server with an empty database of its own."""
    folder = tmp_path_factory.mktemp("mlflow")
    database = folder.name.replace("-", "_")
    services[0].create(database)
    server = Deployed(folder, *services, database=database)
    server.start()
    yield server
    server.stop()


class User:
    """Somebody's clone, with a home of their own, so that no lock is shared with the others."""

    def __init__(self, root: Path, server: Deployed, secret: Path) -> None:
        self.root, self.home = root, root.with_name(f"home-of-{root.name}")
        self.home.mkdir()
        self.env = {
            "HOME": str(self.home),
            "MLFLOW_TRACKING_URI": server.uri,
            "AWS_SHARED_CREDENTIALS_FILE": str(secret / "s3_credentials"),
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def run(self, *command: str) -> str:
        return run_in(self.root, *command, env=self.env)

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=environment() | self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def sync(self) -> str:
        return self.run(sys.executable, "-c", SYNC)

    def commit(self, message: str) -> None:
        self.run("git", "commit", "--quiet", "--all", "--message", message)


def results(server: Deployed) -> list[Any]:
    """All rows, also unfinished ones."""
    client = MlflowClient(server.uri, server.uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    return [*client.search_runs(experiments, "tags.kind = 'result'")]


def assert_once_each(server: Deployed, count: int) -> None:
    """So many rows, all complete, each with one version, and one file that the server really has."""
    rows = results(server)
    client = MlflowClient(server.uri, server.uri)
    assert {row.info.status for row in rows} == {"FINISHED"}
    assert len(rows) == len({row.data.tags["row_key"] for row in rows}) == count
    versions = [str(version.run_id) for version in client.search_model_versions()]
    assert sorted(versions) == sorted(row.info.run_id for row in rows)
    for row in rows:
        assert Path(client.download_artifacts(row.info.run_id, "params.json")).stat().st_size


def test_two_users_train_push_pull_and_sync(
    services: tuple[Postgres, str, Path], server: Deployed, dvc_repository: Path, tmp_path: Path
) -> None:
    postgres, s3, secret = services
    origin, place = str(tmp_path / "origin"), tmp_path / "users"
    place.mkdir()
    shutil.move(dvc_repository, place / "alice")
    alice = User(place / "alice", server, secret)
    alice.run("dvc", "remote", "add", "--default", "storage", "s3://results/dvc")
    alice.run("dvc", "remote", "modify", "storage", "endpointurl", s3)
    alice.run("git", "init", "--quiet", "--bare", origin)
    alice.run("git", "remote", "add", "origin", origin)
    alice.run("dvc", "repro")
    alice.run("git", "add", "--all")
    alice.commit("first results")
    alice.run("dvc", "push", "--quiet")
    alice.run("git", "push", "--quiet", "origin", "HEAD:main")
    assert_once_each(server, 2)

    run_in(place, "git", "clone", "--quiet", "--branch", "main", origin, "bob")
    bob = User(place / "bob", server, secret)
    bob.run("dvc", "pull", "--quiet")
    assert "Running stage" not in bob.run("dvc", "repro", "export@translation", "export@sentiment")
    assert bob.sync() == "rows 0\n"

    edit(alice.root, "bonus: 0", "bonus: 5")
    edit(bob.root, "learning_rate: 1e-3", "learning_rate: 1e-2")
    both(alice, bob)
    assert_once_each(server, 4)
    bob.run("git", "checkout", "--quiet", "-b", "bob")
    for user, branch in ((alice, "main"), (bob, "bob")):
        user.commit("another result")
        user.run("dvc", "push", "--quiet")
        user.run("git", "push", "--quiet", "origin", f"HEAD:{branch}")
    alice.run("git", "fetch", "--quiet", "origin", "bob:bob")
    alice.run("dvc", "fetch", "--quiet", "--all-commits")
    assert (alice.sync(), bob.sync()) == ("rows 0\n", "rows 0\n")

    bob.run("git", "fetch", "--quiet", "origin", "main")
    bob.run("git", "checkout", "--quiet", "--detach", "origin/main")
    bob.run("dvc", "pull", "--quiet")
    for user in (alice, bob):
        edit(user.root, "bonus: 5", "bonus: 7")
    both(alice, bob)  # the same result, at about the same moment
    assert_once_each(server, 5)
    assert (alice.sync(), bob.sync()) == ("rows 0\n", "rows 0\n")
    before = {row.info.run_id: row.data.to_dictionary() for row in results(server)}

    server.stop()
    postgres.stop()
    edit(alice.root, "bonus: 7", "bonus: 8")
    assert "tracking: " in alice.run("dvc", "repro")
    postgres.start()
    server.start()
    assert {row.info.run_id: row.data.to_dictionary() for row in results(server)} == before
    assert (alice.sync(), bob.sync()) == ("rows 1\n", "rows 0\n")
    assert_once_each(server, 6)


def both(*users: User) -> None:
    """Let the users run the pipeline at the same time."""
    running = [user.start("dvc", "repro") for user in users]
    for process in running:
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and "tracking: " not in printed, printed


def write_at_once(
    root: Path,
    env: dict[str, str],
    rounds: int,
    searched: Barrier,
    turn: Barrier,
    created: "multiprocessing.Queue[Any]",
) -> None:
    """Write the row of a repository's result again and again, in step with others between search and creation."""
    os.environ.update(env)
    os.chdir(root)
    from transformer.tracking import model, rows
    from transformer.tracking.sync import sync

    create = rows._create
    model.log_model_files = lambda *_: None  # hundreds of them, 15 s a round, and no part of what is raced for

    def together(*arguments: Any) -> str:
        searched.wait(120)
        run_id = create(*arguments)
        created.put(run_id)
        return run_id

    rows._create = together  # type: ignore[assignment]
    for _ in range(rounds):
        turn.wait(120)
        sync(root, echo=print)
        turn.wait(120)


@pytest.mark.parametrize(("writers", "rounds"), [(2, 20), (3, 5)])
def test_the_same_result_written_at_the_same_moment_is_one_row(
    writers: int,
    rounds: int,
    services: tuple[Postgres, str, Path],
    server: Deployed,
    fresh_repository: Path,
    tmp_path: Path,
) -> None:
    made = Path(shutil.copytree(fresh_repository, tmp_path / "repository"))
    edit(made, "tracking: true", "tracking: false")
    edit(made, "registered_name: translation-model", f"registered_name: at-once-{writers}")
    run_in(made, "dvc", "repro", "report@translation")
    users = [User(Path(shutil.copytree(made, tmp_path / f"user-{n}")), server, services[2]) for n in range(writers)]
    context = multiprocessing.get_context("spawn")
    searched, turn = context.Barrier(writers), context.Barrier(writers + 1)
    created: multiprocessing.Queue[str] = context.Queue()
    arguments = [(user.root, environment() | user.env, rounds, searched, turn, created) for user in users]
    processes = [context.Process(target=write_at_once, args=each, daemon=True) for each in arguments]
    for process in processes:
        process.start()
    client = MlflowClient(server.uri, server.uri)
    for _ in range(rounds):
        turn.wait(120)
        turn.wait(120)
        ids = [created.get(timeout=60) for _ in range(writers)]
        (row,) = [row for row in results(server) if row.data.tags["task"] == "translation"]
        assert (row.info.run_id, row.info.status) == (min(ids), "FINISHED")
        (version,) = client.search_model_versions(f"name = 'at-once-{writers}'")
        assert version.run_id == row.info.run_id
        assert client.get_model_version_by_alias(f"at-once-{writers}", "best").version == version.version
        client.delete_model_version(version.name, version.version)
        client.delete_run(row.info.run_id)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


def test_a_request_for_another_host_is_refused(server: Deployed) -> None:
    """As after a page of somebody else's has pointed its name here (DNS rebinding)."""
    address = f"{server.uri}/api/2.0/mlflow/experiments/get?experiment_id=0"
    with urllib.request.urlopen(address) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example.org"}))


def test_a_store_of_the_release_before_is_upgraded(
    services: tuple[Postgres, str, Path], dvc_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its schema is made with MLflow's own migrations, and filled with a result of today's."""
    postgres, _, secret = services
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    for database in ("today", "older"):
        postgres.create(database)
    today, older = (Deployed(tmp_path, *services, database=name) for name in ("today", "older"))
    today.start()
    try:
        user = User(dvc_repository, today, secret)
        user.run("dvc", "repro")
        before = {row.info.run_id: row.data.to_dictionary() for row in results(today)}
    finally:
        today.stop()
    make_older(postgres.uri("older"), postgres.uri("today"))
    assert revision(postgres.uri("older")) == REVISION
    older.start()
    try:
        assert {row.info.run_id: row.data.to_dictionary() for row in results(older)} == before
        user.env["MLFLOW_TRACKING_URI"] = older.uri
        assert user.sync() == "rows 0\n"
        edit(user.root, "bonus: 0", "bonus: 5")
        assert "tracking: " not in user.run("dvc", "repro")
        assert_once_each(older, 3)
    finally:
        older.stop()
    assert revision(postgres.uri("older")) == revision(postgres.uri("today")) != REVISION


def revision(uri: str) -> str:
    """That of a database's schema."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    with engine.connect() as connection:
        found = str(connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalar_one())
    engine.dispose()
    return found


def make_older(uri: str, filled: str) -> None:
    """Make the schema of the release before in an empty database, and copy what another one has into it."""
    import sqlalchemy
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base

    engine, source = sqlalchemy.create_engine(uri), sqlalchemy.create_engine(filled)
    Base.metadata.create_all(engine)
    config = _get_alembic_config(uri)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION)
    tables, given = sqlalchemy.MetaData(), sqlalchemy.MetaData()
    tables.reflect(engine)
    given.reflect(source)
    with engine.begin() as connection, source.connect() as reader:
        for table in tables.sorted_tables:
            if table.name not in given.tables or table.name == "alembic_version":
                continue
            has = given.tables[table.name].c
            columns = [has[column.name] for column in table.c if column.name in has]
            rows = [dict(row) for row in reader.execute(sqlalchemy.select(*columns)).mappings()]
            connection.execute(table.delete())  # what the migrations put there
            if rows:
                connection.execute(table.insert(), rows)
    for each in (engine, source):
        each.dispose()
