"""Provides a tiny repository with the shape of the real pipeline, which DVC really runs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import made_once
from tests.kit import ROOT, clean_environment
from tests.tracking.services import Deployed, Postgres, running
from tests.warm import with_warm_commands
from transformer.tracking.store import Store, open_store

DVC_YAML = """\
stages:
  download:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py download ${item.task}
    deps: [pipeline.py]
    params: ["${item.task}.download"]
    outs: ["data/${item.task}/corpus"]
  tokenize:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py tokenize ${item.task}
    deps: ["data/${item.task}/corpus"]
    params: ["${item.task}.tokenize"]
    outs: ["data/${item.task}/tokens"]
  build_vocab:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py build_vocab ${item.task}
    deps: ["data/${item.task}/tokens"]
    params: ["${item.task}.vocab"]
    outs: ["data/${item.task}/vocab", "data/${item.task}/encoded"]
    metrics: ["reports/${item.task}/vocabulary.json": {cache: false}]
  train:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py train ${item.task}
    deps: ["data/${item.task}/encoded", "data/${item.task}/vocab"]
    params: ["${item.task}.model", "${item.task}.train", hardware]
    outs: ["models/${item.task}/trained"]
    metrics: ["reports/${item.task}/training.json": {cache: false}]
    plots: ["reports/${item.task}/history.tsv": {cache: false}]
  figures:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py figures ${item.task}
    deps: ["models/${item.task}/trained", "reports/${item.task}/history.tsv"]
    params: ["${item.task}.figures", "${item.task}.train"]
    outs: ["reports/${item.task}/figures"]
  evaluate:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py evaluate ${item.task}
    deps: ["models/${item.task}/trained", "data/${item.task}/encoded", "reports/${item.task}/training.json"]
    params: ["${item.task}.train", "${item.task}.evaluate", hardware]
    outs: ["reports/${item.task}/predictions.tsv"]
    metrics: ["reports/${item.task}/evaluation.json": {cache: false}]
    plots: ["reports/${item.task}/plots"]
  export:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py export ${item.task}
    deps: ["models/${item.task}/trained", "reports/${item.task}/evaluation.json", "data/${item.task}/vocab"]
    params: ["${item.task}.export"]
    outs: ["models/${item.task}/bundle"]
  convert:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py convert ${item.task}
    deps: ["models/${item.task}/bundle", "reports/${item.task}/predictions.tsv"]
    params: ["${item.task}.convert"]
    outs: ["models/${item.task}/converted"]
    metrics: ["reports/${item.task}/conversion.json": {cache: false}]
  report:
    matrix: {task: [translation, sentiment]}
    cmd: python pipeline.py report ${item.task}
    deps: ["models/${item.task}/bundle", "reports/${item.task}/figures"]
"""
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
PARAMS = "hardware: {device: cpu, threads: 2}\nruntime: {tracking: true}\n" + "".join(
    TASK_PARAMS.format(task=task) for task in ("translation", "sentiment")
)
Run = Callable[..., str]


def environment() -> dict[str, str]:
    """The environment of a user's shell with the package and the tools on PATH, and no configuration.

    Commands that are not named by their path are warm (tests/warm).
    """
    return with_warm_commands(clean_environment(PYTHONPATH=str(ROOT)))


def run_in(root: Path, *command: str, env: Mapping[str, str] | None = None) -> str:
    """Run a command in the repository and return its output; fails the test if it fails."""
    done = subprocess.run(
        command,
        cwd=root,
        env=environment() | dict(env or {}),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def make_repository(root: Path) -> None:
    """Set up git, DVC and the tiny pipeline, committed."""
    shutil.copy(Path(__file__).with_name("pipeline.py"), root)
    (root / "dvc.yaml").write_text(DVC_YAML)
    (root / "params.yaml").write_text(PARAMS)
    ignored = (
        "mlflow.db*",
        "mlartifacts",
        "data",
        "models",
        "predictions.tsv",
        "plots",
        "figures",
        "report.html",
        "__pycache__",
    )
    (root / ".gitignore").write_text("".join(f"{name}\n" for name in ignored))
    run_in(root, "git", "init", "--quiet")
    run_in(root, "dvc", "init", "--quiet")
    run_in(root, "dvc", "config", "core.check_update", "false")
    run_in(root, "git", "add", "--all")
    run_in(root, "git", "commit", "--quiet", "--message", "start")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the tracking takes for a DVC repository's root; also the working directory."""
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DVC_"))]:
        monkeypatch.delenv(name)
    (tmp_path / ".dvc").mkdir()
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.fixture
def store(root: Path, empty_database: Path) -> Store:
    """An empty store in its own database."""
    shutil.copy(empty_database, root)
    return open_store(root, "sentiment")


@pytest.fixture(scope="session")
def fresh_repository(empty_database: Path) -> Path:
    """The tiny repository, committed but not run yet."""

    def make(folder: Path) -> None:
        folder.mkdir()
        make_repository(folder)
        shutil.copy(empty_database, folder)

    return made_once("repository", make)


@pytest.fixture(scope="session")
def evaluated(fresh_repository: Path) -> Path:
    """The tiny repository in which the stages up to `evaluate` of translation have run: there is no row yet."""

    def make(folder: Path) -> None:
        shutil.copytree(fresh_repository, folder)
        run_in(folder, "dvc", "repro", "evaluate@translation")

    return made_once("evaluated", make)


@pytest.fixture
def dvc_repository(fresh_repository: Path, tmp_path: Path) -> Path:
    """A copy of the tiny repository for one test."""
    return Path(shutil.copytree(fresh_repository, tmp_path / "repository"))


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
