"""Provides a tiny repository with the shape of the real pipeline, which DVC really runs."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest

from tests.kit import ROOT, clean_environment, free_port, start_server, stop_server
from tests.system.tracking.services import Deployed, Postgres, running
from tests.workflow.conftest import root, store

__all__ = ["root", "store"]

TRAINING, SCORES = ["reports/T/training.json", "reports/T/history.tsv"], ["reports/T/evaluation.json"]
STAGES = {
    "download": ("download", [], ["data/T/corpus"], []),
    "tokenize": ("tokenize", ["data/T/corpus"], ["data/T/tokens"], []),
    "build_vocab": ("vocab", ["data/T/tokens"], ["data/T/vocab"], ["reports/T/vocabulary.json"]),
    "train": ("model train", ["data/T/vocab"], ["models/T/trained"], TRAINING),
    "figures": ("figures train", ["models/T/trained", *TRAINING], ["reports/T/figures"], []),
    "evaluate": ("evaluate train", ["models/T/trained", *TRAINING], ["reports/T/predictions.tsv"], SCORES),
    "export": ("export", ["models/T/trained", *SCORES], ["models/T/bundle"], []),
    "convert": ("convert", ["models/T/bundle"], ["models/T/converted"], ["reports/T/conversion.json"]),
}
"""Each stage's sections, dependencies, outputs and metrics."""


def pipeline() -> str:
    """The dvc.yaml of a tiny pipeline with the real one's files."""
    stages: dict[str, Any] = {}
    made: list[str] = []
    for name, (sections, deps, outs, metrics) in STAGES.items():
        own = [*outs, f"reports/T/ran/{name}.json"]
        made += [*own, *metrics]
        stages[name] = {
            "deps": deps or ["pipeline.py"],
            "params": [f"T.{section}" for section in sections.split()],
            "outs": own,
            "metrics": [{path: {"cache": False}} for path in metrics],
        }
    stages["report"] = {"deps": made, "outs": [{"reports/T/result.json": {"cache": False}}]}
    groups = {
        name: {"foreach": list(TASKS), "do": {"cmd": f"python pipeline.py {name} T", **stage}}
        for name, stage in stages.items()
    }
    return re.sub(r"\bT\b", "${item}", json.dumps({"stages": groups}, indent=1))


TASK_PARAMS = """\
{task}:
  download: {{seed: 1, source: sample}}
  tokenize: {{kind: whitespace}}
  vocab: {{minimum: 2}}
  model: {{d_model: 8, dropout: 0.1}}
  train: {{learning_rate: 1e-3, layers: [2, 3], schedule: null}}
  figures: {{sentences: [a]}}
  evaluate: {{bonus: 0, batch_size: 1.0}}
  export: {{registered_name: {task}-model, alias: best}}
  convert: {{formats: [onnx]}}
"""
TASKS = ("translation", "sentiment")
PARAMS = "runtime: {tracking: true, tracking_seconds: 60}\n" + "".join(TASK_PARAMS.format(task=task) for task in TASKS)


def environment() -> dict[str, str]:
    """The environment of a user's shell with the package and the tools on PATH, and no configuration."""
    return clean_environment(PYTHONPATH=str(ROOT))


def run_in(root: Path, *command: str, env: Mapping[str, str] | None = None) -> str:
    """Run a command in the repository and return its output; fails the test if it fails."""
    own = environment() | dict(env or {})
    done = subprocess.run(command, cwd=root, env=own, text=True, stdout=PIPE, stderr=STDOUT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def fresh_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny repository, committed but not run yet."""
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(Path(__file__).with_name("pipeline.py"), root)
    (root / "dvc.yaml").write_text(pipeline())
    (root / "params.yaml").write_text(PARAMS)
    ignored = (
        *("mlflow.db*", "mlartifacts", "data", "models", "predictions.tsv", "figures", "ran", "report.html"),
        *("result.json", "__pycache__"),
    )
    (root / ".gitignore").write_text("".join(f"{name}\n" for name in ignored))
    for command in (
        "git init -q",
        "dvc init -q",
        "dvc config core.check_update false",
        "git add -A",
        "git commit -qm start",
    ):
        run_in(root, *command.split())
    return root


@pytest.fixture
def dvc_repository(fresh_repository: Path, tmp_path: Path) -> Path:
    """A copy of the tiny repository for one test."""
    return Path(shutil.copytree(fresh_repository, tmp_path / "repository"))


@pytest.fixture
def server_of_its_own(tmp_path: Path) -> Iterator[str]:
    """The address of `mlflow server` with a database and artifacts of its own."""
    folder, uri = tmp_path / "server", f"http://127.0.0.1:{free_port()}"
    folder.mkdir()
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", uri.rpartition(":")[2]]
    command += ["--backend-store-uri", f"sqlite:///{folder}/server.db", "--artifacts-destination", f"{folder}/files"]
    server = start_server(command, f"{uri}/health", folder, environment(), folder / "log")
    yield uri
    stop_server(server)


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
