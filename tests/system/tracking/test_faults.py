"""A tracking store that fails costs a result one line and a bounded time; `transformer sync` finishes the work."""

import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from tests.kit import ROOT, clean_environment, free_port, until
from tests.system.tracking.conftest import environment, run_in
from tests.system.tracking.faults import faulty
from tests.system.tracking.runs import client_of, edit, shown, sync
from transformer.workflow.mlflow import in_words, open_store, without_password

SECONDS = 8
SECRET = "hunter2"


@pytest.fixture(scope="module")
def converted(fresh_repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny repository in which all stages of sentiment but the last have run, and the store is empty."""
    folder = Path(shutil.copytree(fresh_repository, tmp_path_factory.mktemp("converted") / "repository"))
    run_in(folder, "dvc", "repro", "convert@sentiment", "figures@sentiment")
    client_of(folder).search_experiments()
    return folder


@pytest.fixture
def ready(converted: Path, tmp_path: Path) -> Path:
    """A copy for one test."""
    return Path(shutil.copytree(converted, tmp_path / "repository"))


@pytest.fixture
def impatient(ready: Path) -> Path:
    """One whose last stage waits for MLflow for some seconds only."""
    edit(ready, "tracking_seconds: 60", f"tracking_seconds: {SECONDS}")
    return ready


def last_stage(root: Path, **env: str) -> tuple[str, float]:
    """What the last stage printed of MLflow, and the seconds that it took."""
    started = time.monotonic()
    printed = run_in(root, "dvc", "repro", "report@sentiment", env=env)
    assert (root / "reports/sentiment/result.json").is_file() and "Traceback" not in printed, printed
    (line,) = [line for line in printed.splitlines() if "transformer sync" in line]
    return line, time.monotonic() - started


@pytest.mark.parametrize("fault", ["down", "error", "drip", "silent"])
def test_a_server_that_does_not_take_the_run_costs_a_line(fault: str, impatient: Path) -> None:
    with nullcontext(f"http://127.0.0.1:{free_port()}") if fault == "down" else faulty(fault) as uri:
        line, seconds = last_stage(impatient, MLFLOW_TRACKING_URI=uri)
    assert line.endswith(f"MLflow has not taken the run in {SECONDS} s: `transformer sync` writes it later") or (
        line.endswith("; `transformer sync` writes the run later") and fault in ("down", "error")
    )
    assert seconds < SECONDS + 15
    assert sync(impatient).endswith("1 runs written\n") and sync(impatient).endswith("0 runs written\n")


def test_a_locked_database_costs_a_line(impatient: Path) -> None:
    with closing(sqlite3.connect(impatient / "mlflow.db", isolation_level=None)) as another:
        another.execute("BEGIN EXCLUSIVE")
        line, seconds = last_stage(impatient)
    assert ("database is locked" in line or "has not taken the run" in line) and seconds < SECONDS + 15
    assert sync(impatient).endswith("1 runs written\n")


def test_a_run_that_was_given_up_halfway_is_written_by_sync(impatient: Path, server_of_its_own: str) -> None:
    """By a server that takes two seconds for each request, and at last answers."""
    with faulty("slow", int(server_of_its_own.rpartition(":")[2])) as uri:
        line, seconds = last_stage(impatient, MLFLOW_TRACKING_URI=uri)
    assert "has not taken the run" in line and seconds < SECONDS + 15
    assert sync(impatient, MLFLOW_TRACKING_URI=server_of_its_own).endswith("1 runs written\n")
    (run,) = shown(server_of_its_own).values()
    assert run["status"] == "FINISHED" and "reports/report.html" in run["files"]
    assert sync(impatient, MLFLOW_TRACKING_URI=server_of_its_own).endswith("0 runs written\n")


@pytest.mark.parametrize("share", ["no store", "an empty store"])
def test_a_full_disk_costs_a_line(share: str, impatient: Path) -> None:
    """In its own namespace, which needs no privileges if the kernel allows it."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this system lets users make no namespaces")
    small, size, empty = impatient / "small", 20_000, impatient / "mlflow.db"  # bytes: fewer than a run takes
    small.mkdir()
    if share == "an empty store":
        shutil.copy(empty, small)
        size += empty.stat().st_size
    script = f"""
        cp -a small full && mount -t tmpfs -o size={size} none small && cp -a full/. small
        dvc repro report@sentiment && touch done
        echo; mount -o remount,size=100m small
        {sys.executable} -m transformer sync && {sys.executable} -m transformer sync
    """
    env = clean_environment(PYTHONPATH=str(ROOT), MLFLOW_TRACKING_URI=f"sqlite:///{small}/mlflow.db")
    printed = run_in(impatient, "unshare", "-rm", "sh", "-c", script, env=env)
    assert (impatient / "done").exists() and "Traceback" not in printed, printed
    assert "disk is full" in printed or "has not taken the run" in printed, printed
    assert re.findall(r"^(\d) runs written$", printed, re.MULTILINE) == ["1", "0"]


def test_a_process_killed_while_it_makes_the_database_leaves_none(root: Path) -> None:
    """A half-made one would never open: MLflow's migrations go on only from where one ended."""
    opening = "from pathlib import Path; from transformer.workflow.mlflow import open_store; open_store(Path(), 'x')"
    process = subprocess.Popen([sys.executable, "-c", opening], cwd=root)
    until(lambda: any(path.stat().st_size for path in root.glob("mlflow.db*") if path.suffix != ".lock"))
    process.kill()
    process.wait()
    assert not (root / "mlflow.db").exists()
    assert open_store(root, "x").runs("") == []


def test_a_copied_store_is_refused_and_nothing_is_written_elsewhere(ready: Path, tmp_path: Path) -> None:
    run_in(ready, "dvc", "repro", "report@sentiment")
    before = sorted((path, path.stat().st_mtime_ns) for path in ready.glob("mlartifacts/**/*"))
    copy = Path(shutil.copytree(ready, tmp_path / "copy"))
    edit(copy, "bonus: 0", "bonus: 3")  # translation's
    edit(copy, "bonus: 0", "bonus: 4")  # sentiment's
    line, _ = last_stage(copy)
    assert f"{copy}/mlflow.db was copied or moved from {ready}/mlartifacts" in line
    assert sorted((path, path.stat().st_mtime_ns) for path in ready.glob("mlartifacts/**/*")) == before
    (copy / "mlflow.db").unlink()
    shutil.rmtree(copy / "mlartifacts")
    assert sync(copy).endswith("1 runs written\n")


def test_a_database_of_an_older_mlflow_is_refused_with_the_command_that_upgrades_it(ready: Path) -> None:
    with closing(sqlite3.connect(ready / "mlflow.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    line, _ = last_stage(ready)
    assert "out-of-date database schema" in line and "mlflow db upgrade" in line


def test_a_deleted_experiment_is_said_with_the_command_that_restores_it(ready: Path) -> None:
    client = client_of(ready)
    client.delete_experiment(client.create_experiment("sentiment"))
    line, _ = last_stage(ready)
    assert "the experiment `sentiment` is deleted in MLflow: restore it with `MLFLOW_TRACKING_URI=sqlite:///" in line


def test_a_password_in_the_address_is_never_shown(ready: Path) -> None:
    uri = f"http://user:{SECRET}@127.0.0.1:{free_port()}"
    line, _ = last_stage(ready, MLFLOW_TRACKING_URI=uri)
    command = (str(Path(sys.executable).with_name("transformer")), "sync")
    env = environment() | {"MLFLOW_TRACKING_URI": uri}
    done = subprocess.run(command, cwd=ready, env=env, text=True, capture_output=True)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert SECRET not in line + done.stderr + done.stdout
    assert not [path for path in ready.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "address",
    ["http://u:hunter2@host/path", "postgresql://u:p/hunter2?x#y@host/db", "mysql://host/db?user=u&password=hunter2"],
)
def test_passwords_are_masked_wherever_they_stand(address: str) -> None:
    for text in (address, f"{'x' * 280} {address} cannot be reached", f"Connection to {address}: refused"):
        assert SECRET not in in_words(ValueError(text)) and "host" in without_password(text)
