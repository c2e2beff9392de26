"""A real MLflow server that is stopped, killed, suspended and restarted: `make stress`."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from tests.kit import free_port
from tests.tracking.conftest import environment, run_in
from tests.tracking.test_live import COMMAND, END, METRICS
from tests.tracking.test_workflow import SYNC, edit

pytestmark = pytest.mark.stress
SECRET = "hunter2"
NAME = "translation-model"
LACKED = "1 rows repaired: files, or a registered version, were missing\n"


class Server:
    """`mlflow server` on loopback with its own database and artifacts."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", str(self.port)]
        command += ["--backend-store-uri", f"sqlite:///{self.folder}/server.db"]
        command += ["--artifacts-destination", str(self.folder / "artifacts")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment(), stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=1):
                return
            time.sleep(0.2)
        raise AssertionError((self.folder / "log").read_text())

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self.process.wait(timeout=30)

    def rows(self) -> list[str]:
        client = MlflowClient(self.uri, self.uri)
        experiments = [each.experiment_id for each in client.search_experiments()]
        return sorted(run.data.tags["row_key"] for run in client.search_runs(experiments, "tags.kind = 'result'"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(folder)
    server.start()
    yield server
    with suppress(ProcessLookupError):
        server.send(signal.SIGKILL)


def test_a_server_that_goes_and_comes_back_has_every_row_once(server: Server, dvc_repository: Path) -> None:
    env = {"MLFLOW_TRACKING_URI": server.uri}
    run_in(dvc_repository, "dvc", "repro", env=env)
    first = server.rows()
    assert len(first) == 2

    server.send(signal.SIGTERM)
    edit(dvc_repository, "bonus: 0", "bonus: 5")
    output = run_in(dvc_repository, "dvc", "repro", env=env)
    assert "tracking: " in output and "Traceback" not in output
    evaluation = json.loads((dvc_repository / "reports/translation/evaluation.json").read_text())
    assert evaluation["validation"]["score"] == pytest.approx(5.1, abs=0.1)

    server.start()
    assert sync_with(server, dvc_repository).endswith("rows 1\n")
    assert set(first) < set(server.rows())
    assert len(server.rows()) == 3
    assert sync_with(server, dvc_repository) == "rows 0\n"


def sync_with(server: Server, root: Path) -> str:
    return run_in(root, sys.executable, "-c", SYNC, env={"MLFLOW_TRACKING_URI": server.uri})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_lost_in_the_middle_holds_no_stage_up(
    number: signal.Signals, server: Server, dvc_repository: Path
) -> None:
    env = environment() | {"MLFLOW_TRACKING_URI": server.uri, "MLFLOW_HTTP_REQUEST_TIMEOUT": "2"}
    process = subprocess.Popen(
        COMMAND, cwd=dvc_repository, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True
    )
    assert process.stdin is not None
    for step in range(600):  # more than a batch, which makes the stage long
        process.stdin.write(json.dumps({**METRICS, "step": step}) + "\n")
    process.stdin.flush()
    time.sleep(6)
    server.send(number)
    started = time.monotonic()
    _, said = process.communicate(json.dumps(END) + "\n", timeout=60)
    assert process.returncode == 0
    assert time.monotonic() - started < 30
    assert said.startswith("tracking: ") and said.count("\n") == 1


def test_a_password_in_the_address_is_never_shown(server: Server, dvc_repository: Path) -> None:
    answering = {"MLFLOW_TRACKING_URI": server.uri.replace("//", f"//user:{SECRET}@")}
    shown = run_in(dvc_repository, "dvc", "repro", "export@sentiment", env=answering)
    assert SECRET not in shown and "tracking" not in shown
    assert len(server.rows()) == 1
    env = {"MLFLOW_TRACKING_URI": f"http://user:{SECRET}@127.0.0.1:1"}
    output = run_in(dvc_repository, "dvc", "repro", "export@translation", env=env)
    assert "tracking: " in output
    done = subprocess.run(
        [str(Path(sys.executable).with_name("transformer")), "sync"],
        cwd=dvc_repository,
        env=environment() | env,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert SECRET not in output + done.stderr + done.stdout
    for path in dvc_repository.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_what_was_lost_on_a_server_comes_back_or_the_command_is_named(server: Server, dvc_repository: Path) -> None:
    """A row in the trash whose version stays, lost artifacts, and a deleted experiment."""
    run_in(dvc_repository, "dvc", "repro", "report@translation", env={"MLFLOW_TRACKING_URI": server.uri})
    client = MlflowClient(server.uri, server.uri)
    assert sync_with(server, dvc_repository) == "rows 0\n"
    first = best(client)
    reports = files(client, first)
    assert {"reports/report.html", "reports/figures", "params.json"} <= reports

    client.delete_run(first)
    assert sync_with(server, dvc_repository) == "rows 1\n"
    assert [version.run_id for version in client.search_model_versions(f"name = '{NAME}'")].count(first) == 1
    second = best(client)
    assert second != first and files(client, second) == reports
    assert sync_with(server, dvc_repository) == "rows 0\n"

    for lost in ("artifacts", f"artifacts/1/{second}/artifacts/reports", "artifacts/1/models"):
        shutil.rmtree(server.folder / lost)
        assert sync_with(server, dvc_repository) == f"{LACKED}rows 0\n", lost
        assert files(client, second) == reports and best(client) == second
        assert sync_with(server, dvc_repository) == "rows 0\n", lost

    client.delete_experiment("1")
    restore, gc = deleted_experiment(server, dvc_repository)
    run_in(dvc_repository, *restore[1:], env=dict([restore[0].split("=", 1)]))
    assert files(client, second) == reports
    assert len(server.rows()) == 2, "MLflow also restores the earlier run, whose artifacts are gone"
    kept = min(first, second)
    assert sync_with(server, dvc_repository) == ("" if kept == second else LACKED) + "rows 0\n"
    assert len(server.rows()) == 1 and best(client) == kept
    shutil.rmtree(server.folder / "artifacts")
    assert sync_with(server, dvc_repository) == f"{LACKED}rows 0\n"
    assert {"params.json", "reports/evaluation.json"} <= files(client, kept)
    assert sync_with(server, dvc_repository) == "rows 0\n"

    client.delete_experiment("1")
    assert [restore, gc] == deleted_experiment(server, dvc_repository)
    database = f"sqlite:///{server.folder}/server.db"  # known to its administrator
    gc = [word.replace("DATABASE", database) for word in gc]
    run_in(server.folder, *gc[1:], env=dict([gc[0].split("=", 1)]))
    assert sync_with(server, dvc_repository) == "rows 1\n"
    assert files(client, best(client)) == reports
    assert sync_with(server, dvc_repository) == "rows 0\n"


def best(client: MlflowClient) -> str:
    """The run whose version has the alias."""
    return str(client.get_model_version_by_alias(NAME, "best").run_id)


def files(client: MlflowClient, run: str) -> set[str]:
    """The artifacts of a run, two levels deep, each downloaded from the server."""
    found = [file for folder in (None, "reports") for file in client.list_artifacts(run, folder)]
    for file in found:
        assert file.is_dir or Path(client.download_artifacts(run, file.path)).stat().st_size
    return {file.path for file in found}


def deleted_experiment(server: Server, root: Path) -> list[list[str]]:
    """The commands in the message of `transformer sync`."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("transformer")), "sync"],
        cwd=root,
        env=environment() | {"MLFLOW_TRACKING_URI": server.uri},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the experiment `translation` is deleted") and done.stderr.count("\n") == 1
    return [shlex.split(command) for command in re.findall(r"`(MLFLOW[^`]*)`", done.stderr)]
