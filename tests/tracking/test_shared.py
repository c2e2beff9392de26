"""Two users, one MLflow server on PostgreSQL and one S3 remote, as deploy/compose.yaml has them: `make stress`."""

import multiprocessing
import os
import shutil
import urllib.error
import urllib.request
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.tracking.conftest import environment, run_in
from tests.tracking.services import Deployed, Postgres
from tests.tracking.test_workflow import edit
from tests.tracking.users import User, assert_once_each, results

pytestmark = pytest.mark.stress
NAME = "translation-model"


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
