"""What `transformer sync` restores, from any folder of a repository whose pipeline DVC really ran."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from tests.kit import free_port
from tests.tracking.conftest import environment, run_in
from tests.tracking.test_workflow import Reader
from transformer.core.errors import UserError
from transformer.tracking.location import locate
from transformer.tracking.serving import _given, _own, _request
from transformer.tracking.sync import missing_rows

NAME = "translation-model"


class Project:
    """A repository with one recorded result."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder

    def sync(self) -> str:
        """Run `transformer sync` in a subfolder."""
        return run_in(self.root / "data" / "translation", "transformer", "sync")

    def tried(self) -> subprocess.CompletedProcess[str]:
        """The same in the repository itself, whatever comes of it."""
        return subprocess.run(["transformer", "sync"], cwd=self.root, env=environment(), text=True, capture_output=True)

    def refused(self) -> str:
        done = self.tried()
        assert done.returncode == 1
        return done.stderr

    def change(self, act: Callable[[MlflowClient], Any]) -> None:
        """Change the store as a user does in MLflow."""
        uri = f"sqlite:///{self.root}/mlflow.db"
        act(MlflowClient(uri, uri))

    def row(self) -> dict[str, Any]:
        (row,) = Reader(self.root, self.folder).rows().values()
        return row

    def run_id(self) -> str:
        (run,) = Reader(self.root, self.folder).runs("result")
        return str(run.info.run_id)


@pytest.fixture(scope="module")
def recorded(evaluated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(evaluated, tmp_path_factory.mktemp("recorded") / "repository"))
    run_in(root, "dvc", "repro", "report@translation")
    return root


@pytest.fixture
def project(recorded: Path, tmp_path: Path) -> Project:
    """A copy, so that its store must also be repaired."""
    return Project(Path(shutil.copytree(recorded, tmp_path / "repository", symlinks=True)), tmp_path)


def test_nothing_lost_is_nothing_done_wherever_sync_is_started(project: Project) -> None:
    before = project.row()
    assert "rows repaired" not in (first := project.sync()) and first.endswith("0 rows written\n")
    assert project.sync() == "0 rows written\n"
    assert project.row() == before
    assert [*project.root.rglob("*.db")] == [project.root / "mlflow.db"]
    assert [*project.root.rglob(".dvc")] == [project.root / ".dvc"]


def test_lost_artifacts_come_back_under_the_same_run(project: Project) -> None:
    project.sync()
    before, run = project.row(), project.run_id()
    assert {"reports/report.html", "reports/figures/attention_1.svg", "params.json"} <= before["files"].keys()
    (model,) = (path.parents[1] for path in project.root.glob("mlartifacts/models/*/artifacts/MLmodel"))
    artifacts = project.root / "mlartifacts" / run / "artifacts"
    for lost in (project.root / "mlartifacts", model, artifacts / "reports", artifacts / "params.json"):
        assert not missing_rows(project.root)
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
        assert missing_rows(project.root), "`transformer summary` syncs then"
        said = "1 rows repaired: files, or a registered version, were missing\n0 rows written\n"
        assert project.sync() == said
        assert (project.row(), project.run_id()) == (before, run)
        assert (model / "artifacts/MLmodel").is_file()
    assert project.sync() == "0 rows written\n"


def test_a_deleted_registered_model_comes_back_with_its_alias(project: Project) -> None:
    project.sync()
    before = project.row()["versions"]
    assert before[0][3] == ["best"] and not missing_rows(project.root)
    project.change(lambda client: client.delete_registered_model(NAME))
    assert project.row()["versions"] == []
    assert missing_rows(project.root)
    assert "1 rows repaired" in project.sync()
    assert project.row()["versions"] == before
    assert not missing_rows(project.root)
    assert project.sync() == "0 rows written\n"


def test_the_version_of_the_workspace_s_result_is_what_is_served(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    project.sync()
    served = _own(project.root, "translation")
    assert served == (f"models:/{NAME}/1", f"{NAME}, version 1")
    assert _given(project.root, "translation", f"models:/{NAME}@best") == served
    example = json.loads(_request(served.uri, locate(project.root).uri))
    assert example == {"dataframe_split": {"columns": ["text"], "data": [["a"]]}}
    project.change(lambda client: client.delete_registered_model(NAME))
    with pytest.raises(UserError, match=f"is not registered as {NAME}"):
        _own(project.root, "translation")
    (project.root / "dvc.lock").unlink()
    with pytest.raises(UserError, match="no complete result of translation"):
        _own(project.root, "translation")


@pytest.mark.stress
def test_a_deleted_logged_model_comes_back_once(project: Project) -> None:
    def delete(client: MlflowClient) -> None:
        (model,) = client.search_logged_models(["1"])
        client.delete_logged_model(model.model_id)

    project.sync()
    assert not missing_rows(project.root)
    project.change(delete)
    assert missing_rows(project.root)
    assert "1 rows repaired" in project.sync()
    assert not missing_rows(project.root)
    assert project.sync() == "0 rows written\n"


@pytest.mark.stress
def test_a_row_in_the_trash_is_written_again_and_its_version_gives_way(project: Project) -> None:
    old = project.run_id()
    project.change(lambda client: client.delete_run(old))
    assert project.sync().endswith("1 rows written\n")
    new = project.run_id()
    assert new != old
    stages = Reader(project.root, project.folder).runs("stage")
    assert {run.data.tags["mlflow.parentRunId"] for run in stages} == {new}
    project.change(lambda client: check(client.get_model_version_by_alias(NAME, "best").run_id == new))
    assert project.sync() == "0 rows written\n"


def test_the_summary_does_not_record_where_tracking_is_off(project: Project) -> None:
    params = project.root / "params.yaml"
    params.write_text(params.read_text().replace("tracking: true", "tracking: false"))
    (project.root / "mlflow.db").unlink()
    run_in(project.root, "transformer", "summary")
    assert not (project.root / "mlflow.db").exists()


def test_results_of_a_task_that_the_code_lacks_are_passed_over(project: Project) -> None:
    """As of another branch, whose dvc.lock is found in git."""
    lock = project.root / "dvc.lock"
    own = lock.read_text()
    lock.write_text(own + own.partition("stages:\n")[2].replace("translation", "topics"))
    run_in(project.root, "git", "add", "dvc.lock", "reports")
    run_in(project.root, "git", "commit", "-qm", "topics")
    lock.write_text(own)
    run_in(project.root, "git", "commit", "-qam", "translation alone")
    project.change(lambda client: client.delete_run(project.run_id()))
    done = project.tried()
    assert (done.returncode, done.stdout) == (0, "1 rows written\n"), done.stderr
    assert "results of topics not looked at: the code here has no such task" in done.stderr


def check(true: bool) -> None:
    assert true


@pytest.mark.stress
def test_what_nobody_has_any_more_is_named(project: Project) -> None:
    project.sync()
    name = project.row()["name"]
    for folder in ("mlartifacts", ".dvc/cache", "models", "reports"):
        shutil.rmtree(project.root / folder)
    said = project.sync()
    assert "1 rows in MLflow lack their files" in said and f"`{name}`" in said and "dvc fetch" in said
    assert said.count("\n") == 2 and said.endswith("0 rows written\n"), "once"


@pytest.mark.stress
def test_a_deleted_experiment_is_gone_or_back_by_the_commands_that_sync_names(project: Project) -> None:
    project.sync()
    before = project.row()
    project.change(lambda client: client.delete_experiment("1"))
    said = project.refused()
    assert said.startswith("error: the experiment `translation` is deleted") and said.count("\n") == 1
    restore, gc = re.findall(r"`(MLFLOW[^`]*)`", said)
    variable, *command = shlex.split(restore)
    run_in(project.root, *command, env=dict([variable.split("=", 1)]))
    assert project.row() == before
    assert project.sync() == "0 rows written\n"

    project.change(lambda client: client.delete_experiment("1"))
    variable, *command = shlex.split(gc)
    run_in(project.root, *command, env=dict([variable.split("=", 1)]))
    assert project.sync().endswith("1 rows written\n")
    assert project.row()["versions"][0][3] == ["best"]
    assert project.sync() == "0 rows written\n"


@pytest.mark.stress
def test_the_ui_opens_the_same_store_from_any_folder(project: Project) -> None:
    """In a copy that nothing else has opened, so that its links do not point into the original."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("transformer")), "ui", "--port", str(port)]
    env = environment() | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # its workers take longer to start
    server = subprocess.Popen(command, cwd=project.root / "data", env=env, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=1):
                break
            time.sleep(0.3)
        run = MlflowClient(url, url).get_run(project.run_id())
        assert run.info.artifact_uri.startswith((project.root / "mlartifacts").as_uri())
    finally:
        server.terminate()
        server.wait()
    assert [*project.root.rglob("*.db")] == [project.root / "mlflow.db"]
