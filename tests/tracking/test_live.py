"""The observer as a stage starts it: a separate process that reads JSON lines."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import small_runtime
from tests.tracking.conftest import environment, run_in
from transformer.core.stage import StageObserver
from transformer.results.chain import all_chains
from transformer.results.times import times_of
from transformer.tracking.child import write_kept
from transformer.tracking.store import Store, open_store, waiting

OBSERVER = ("-m", "transformer.tracking.live", "translation", "download")
COMMAND = (sys.executable, *OBSERVER)
WARM = ("python", *OBSERVER)
"""The same, forked from a process that has imported MLflow (tests/warm)."""
METRICS = {"event": "metrics", "step": 120, "time": 1795230000123, "values": {"train_loss": 3.25, "speed": 7}}
END = {"event": "end", "status": "FINISHED"}


def observe(
    root: Path, *events: Any, env: Mapping[str, str] | None = None, stage: str = "download"
) -> subprocess.CompletedProcess[str]:
    lines = "".join(event if isinstance(event, str) else json.dumps(event) + "\n" for event in events)
    command, shell = (*WARM[:-1], stage), environment() | dict(env or {})
    return subprocess.run(command, cwd=root, input=lines, env=shell, text=True, capture_output=True, timeout=60)


def runs(store: Store) -> list[Any]:
    return [*store.client.search_runs([store.experiment_id])]


@pytest.fixture
def dvc_root(dvc_repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in environment().keys() & {"MLFLOW_TRACKING_URI", "DVC_ROOT"}:
        monkeypatch.delenv(name)
    yield dvc_repository


@pytest.fixture
def scored(dvc_root: Path, evaluated: Path) -> Path:
    """`dvc_root` where all but the export and what follows has run."""
    shutil.rmtree(dvc_root)
    return Path(shutil.copytree(evaluated, dvc_root))


def test_a_short_stage_waits_for_the_next_writer(dvc_root: Path) -> None:
    (dvc_root / "mlflow.db").unlink()
    done = observe(dvc_root, METRICS, "no json\n", "[1]\n", END)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (dvc_root / "mlflow.db").exists()
    assert len([*waiting(dvc_root).glob("translation/*.json")]) == 1

    store = open_store(dvc_root, "translation")
    write_kept(store, "translation")
    write_kept(store, "translation")
    (run,) = runs(store)
    key = run.data.tags["stage_key"]
    head = subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=dvc_root, text=True).strip()
    assert run.info.run_name == f"download {key[:8]}"
    assert run.info.status == "FINISHED"
    assert run.info.start_time < run.info.end_time < time.time() * 1000
    tags = {"task": "translation", "stage": "download", "kind": "stage", "git.commit": head}
    assert tags.items() <= run.data.tags.items()
    (point,) = store.client.get_metric_history(run.info.run_id, "train_loss")
    assert (point.value, point.step, point.timestamp) == (3.25, 120, 1795230000123)
    assert run.data.metrics["speed"] == 7


def test_a_long_stage_is_written_while_it_runs(dvc_root: Path) -> None:
    """More events than fit into a batch make a stage long at once; one has more points than MLflow's limit."""
    process = subprocess.Popen(WARM, cwd=dvc_root, stdin=subprocess.PIPE, env=environment(), text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"event": "resumed", "step": 20}) + "\n")
    values = {"train_loss": 3.25, "learning_rate": 0.5, "speed": 7}
    for step in range(600):
        process.stdin.write(json.dumps({**METRICS, "step": step, "values": values}) + "\n")
    process.stdin.flush()
    store = open_store(dvc_root, "translation")
    assert _eventually(lambda: any("train_loss" in run.data.metrics for run in runs(store)))
    (run,) = runs(store)
    assert run.info.status == "RUNNING"
    process.communicate(json.dumps(END | {"status": "FAILED"}) + "\n", timeout=60)
    (run,) = runs(store)
    assert (process.returncode, run.info.status) == (0, "FAILED")
    assert len(store.client.get_metric_history(run.info.run_id, "train_loss")) == 600
    assert run.data.tags["resumed_after_step"] == "20"


def test_the_times_of_a_training_stay_beside_its_result(dvc_root: Path) -> None:
    """Those of the result in dvc.lock, also if it came from the run cache; none if the model differs."""
    path = dvc_root / "params.yaml"
    original, points = path.read_text(), []

    def train() -> None:
        run_in(dvc_root, "dvc", "repro", "train@translation")
        (chain,) = all_chains((dvc_root / "dvc.lock").read_bytes())
        points.append(times_of(dvc_root, chain))

    for rate in ("0.5", "0.25", "0.5"):
        path.write_text(original.replace("learning_rate: 1e-3", f"learning_rate: {rate}"))
        train()
    assert points == [[{"step": 1, "tokens_per_second": 7.0}]] * 3
    assert len([*(dvc_root / ".dvc" / "tmp" / "tracking" / "times" / "translation").iterdir()]) == 2
    (chain,) = all_chains((dvc_root / "dvc.lock").read_bytes())
    other = replace(
        chain, stages=tuple(replace(stage, outs=dict.fromkeys(stage.outs, "0" * 32)) for stage in chain.stages)
    )
    assert times_of(dvc_root, other) == []


@pytest.mark.parametrize("long", [False, True])
def test_a_training_of_other_code_is_no_child_of_the_row(long: bool, scored: Path) -> None:
    """Code is in no key, so all else of the run is as in the row's own training."""
    run_in(scored, "dvc", "repro", "export@translation")
    weights = scored / "models" / "translation" / "trained" / "model.safetensors"
    own = weights.read_text()
    weights.write_text("of other code")
    assert observe(scored, *[METRICS] * (600 if long else 1), END, stage="train").stderr == ""
    weights.write_text(own)
    run_in(scored, "transformer", "sync")
    store = open_store(scored, "translation")
    found = store.client.search_runs([store.experiment_id], "tags.stage = 'train'")
    assert len({run.data.tags["output"] for run in found}) == len(found) == 2
    (row,) = store.client.search_runs([store.experiment_id], "tags.kind = 'result'")
    (child,) = [run for run in found if run.data.tags.get("mlflow.parentRunId") == row.info.run_id]
    (chain,) = all_chains((scored / "dvc.lock").read_bytes())
    assert child.data.tags["output"] == chain.outs["models/translation/trained"]


def test_the_run_of_a_killed_observer_ends_when_its_result_is_there(dvc_root: Path) -> None:
    with subprocess.Popen(WARM, cwd=dvc_root, stdin=subprocess.PIPE, env=environment(), text=True) as process:
        assert process.stdin is not None
        process.stdin.write((json.dumps(METRICS) + "\n") * 600)
        process.stdin.flush()
        store = open_store(dvc_root, "translation")
        assert _eventually(lambda: runs(store))
        process.kill()
    run_in(dvc_root, "dvc", "repro", "export@translation")
    found = store.client.search_runs([store.experiment_id], "tags.stage = 'download'")
    assert sorted(run.info.status for run in found) == ["FINISHED", "KILLED"]


# The observer as the stage starts it, with an edit of params.yaml while it writes the row.
EDITED = """
import sys
from pathlib import Path
from transformer.tracking import live, rows

write = rows.log_files

def write_while_somebody_edits(*arguments):
    write(*arguments)
    params = Path("params.yaml")
    params.write_text(params.read_text().replace("alias: best", "alias: good"))

rows.log_files = write_while_somebody_edits
live.main(["translation", "export"])
"""


def test_what_changes_while_the_row_is_written_leaves_no_row(scored: Path) -> None:
    """The stage checks its inputs once more after that and fails, and DVC records nothing."""
    params = scored / "params.yaml"
    before = params.read_bytes()
    run_in(scored, "python", "pipeline.py", "export", "translation", env={"MLFLOW_TRACKING_URI": "sqlite:///x.db"})
    command = ("python", "-c", EDITED)
    done = subprocess.run(
        command, cwd=scored, input=json.dumps(END), env=environment(), text=True, capture_output=True, timeout=60
    )
    said = "tracking: export@translation: no row written: something changed while the stage ran\n"
    assert (done.returncode, done.stderr) == (0, said)
    store = open_store(scored, "translation")
    (export,) = store.client.search_runs([store.experiment_id], "tags.stage = 'export'")
    assert export.info.status == "FAILED"
    assert not store.client.search_runs([store.experiment_id], "tags.kind = 'result'")
    assert not store.client.search_registered_models()

    params.write_bytes(before)
    assert "tracking" not in run_in(scored, "dvc", "repro", "export@translation")
    (row,) = store.client.search_runs([store.experiment_id], "tags.kind = 'result'")
    assert store.client.get_model_version_by_alias("translation-model", "best").run_id == row.info.run_id


def test_a_resumed_stage_tells_what_it_told_before_it_was_stopped(
    dvc_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So its run has the complete curves, each point once."""
    monkeypatch.chdir(dvc_root)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    runtime = small_runtime(save_every=1, tracking=True)
    before = StageObserver("translation", "download", runtime.model_copy(update={"tracking": False}))
    for step in (1, 2):
        before.metrics(step, {"train_loss": float(step)})
    memory = json.loads(json.dumps(before.memory()))
    observer = StageObserver("translation", "download", runtime)
    observer.resume(2, memory)
    observer.metrics(3, {"train_loss": 3.0})
    assert [event["step"] for event in observer.memory()] == [1, 2, 3]
    observer.end("FINISHED")
    (path,) = waiting(dvc_root).glob("translation/*.json")
    events = json.loads(path.read_text())["events"]
    assert events == [{"event": "resumed", "step": 2}, *observer.memory(), END]


@pytest.mark.parametrize("shown", [True, False])
def test_without_a_terminal_long_work_says_how_far_it_is(
    shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter(range(0, 1000, 25))
    monkeypatch.setattr("transformer.core.stage.time.monotonic", lambda: next(now))
    runtime = small_runtime(progress=shown, save_every=1)
    observer = StageObserver("translation", "train", runtime)
    assert [*observer.progress(range(6), total=6, what="epoch 2", after=12)] == [*range(6)]
    lines = [
        "train@translation: epoch 2: 2 of 6, about 10 min left",
        "train@translation: epoch 2: 5 of 6, about 6 min left",
    ]
    assert capsys.readouterr().err.splitlines() == (lines if shown else [])


def _eventually(condition: Any) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def test_a_server_that_cannot_be_reached_costs_one_line(dvc_root: Path) -> None:
    (dvc_root / "mlflow.db").unlink()
    started = time.monotonic()
    done = observe(dvc_root, METRICS, env={"MLFLOW_TRACKING_URI": "http://127.0.0.1:1"})
    assert done.returncode == 0
    assert done.stderr.startswith("tracking: ") and done.stderr.endswith("run `transformer sync` later\n")
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - started < 20
    assert not (dvc_root / "mlflow.db").exists()


@pytest.mark.parametrize("break_it", ["dvc.yaml", "mlflow.db"])
def test_what_is_broken_costs_one_line(dvc_root: Path, break_it: str) -> None:
    (dvc_root / break_it).write_text("broken: [" * 100)
    done = observe(dvc_root, METRICS)
    assert done.returncode == 0
    assert done.stderr.startswith("tracking: ") and done.stderr.count("\n") == 1


def test_two_first_writers_share_the_database_that_they_create(dvc_root: Path) -> None:
    """Their inputs end without an end event, as for a killed stage; both write at the same time."""
    (dvc_root / "mlflow.db").unlink()
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(WARM, cwd=dvc_root, env=environment(), **pipes) for _ in range(2)]
    errors = [process.communicate(json.dumps(METRICS).encode())[1] for process in processes]
    assert errors == [b"", b""]
    store = open_store(dvc_root, "translation")
    found = [(run.info.status, run.data.metrics["train_loss"]) for run in runs(store)]
    assert found == [("KILLED", 3.25)] * 2
    assert store.client.get_experiment(store.experiment_id).artifact_location == (dvc_root / "mlartifacts").as_uri()
