"""People who share one MLflow server, each with a clone and a home of their own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from tests.tracking.conftest import environment, run_in
from tests.tracking.services import Deployed
from tests.tracking.test_workflow import SYNC


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
