"""Two users, one MLflow server on PostgreSQL and one S3 remote, as deploy/compose.yaml has them."""

import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.system.tracking.conftest import environment, run_in
from tests.system.tracking.runs import client_of, commit, edit, shown, sync
from tests.system.tracking.services import Deployed, Postgres


def test_two_users_train_push_pull_and_sync(
    services: tuple[Postgres, str, Path], server: Deployed, dvc_repository: Path, tmp_path: Path
) -> None:
    postgres, s3, secret = services
    env = {
        "MLFLOW_TRACKING_URI": server.uri,
        "AWS_SHARED_CREDENTIALS_FILE": str(secret / "s3_credentials"),
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    alice, bob = dvc_repository, tmp_path / "bob"
    run_in(alice, "dvc", "remote", "add", "--default", "storage", "s3://results/dvc")
    run_in(alice, "dvc", "remote", "modify", "storage", "endpointurl", s3)
    run_in(alice, "dvc", "repro", env=env)
    commit(alice, "first results")
    run_in(alice, "dvc", "push", "--quiet", env=env)
    first = shown(server.uri)
    assert sorted(run["name"].split()[0] for run in first.values()) == ["sentiment", "translation"]
    client = client_of(server.uri)
    for run in first.values():
        assert Path(client.download_artifacts(run["run"], "reports/report.html")).stat().st_size

    run_in(tmp_path, "git", "clone", "--quiet", str(alice), "bob")
    run_in(bob, "dvc", "pull", "--quiet", env=env)
    ran = run_in(bob, "dvc", "repro", env=env)
    assert ran.count("Running stage") == ran.count(f" is in {server.uri}") == 2, "the last stages alone"
    assert shown(server.uri) == first

    edit(alice, "bonus: 0", "bonus: 5")
    edit(bob, "learning_rate: 1e-3", "learning_rate: 1e-2")
    both = [
        subprocess.Popen(["dvc", "repro"], cwd=root, env=environment() | env, stdout=subprocess.DEVNULL)
        for root in (alice, bob)
    ]
    assert [process.wait(300) for process in both] == [0, 0]
    assert len(shown(server.uri)) == 4
    commit(bob, "another result")
    run_in(bob, "dvc", "push", "--quiet", env=env)
    run_in(alice, "git", "fetch", "--quiet", str(bob), "HEAD:bob")
    assert sync(alice, **env).endswith("0 runs written\n")

    server.stop()
    postgres.stop()
    edit(alice, "bonus: 5", "bonus: 8")
    assert "`transformer sync` writes" in run_in(alice, "dvc", "repro", env=env)
    postgres.start()
    server.start()
    assert (sync(alice, **env)[-15:], sync(bob, **env)[-15:]) == ("1 runs written\n", "0 runs written\n")
    other = env | {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/rebuilt.db"}
    assert "4 runs written" in sync(alice, **other), "from the remote what is Bob's"


def test_a_request_for_another_host_is_refused(server: Deployed) -> None:
    """As after a page of somebody else's has pointed its name here (DNS rebinding)."""
    address = f"{server.uri}/api/2.0/mlflow/experiments/get?experiment_id=0"
    with urllib.request.urlopen(address) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example.org"}))
