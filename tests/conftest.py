"""Provides a real run of the workflow in a clone, shared by the tests that need one."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from xdist.scheduler import LoadFileScheduling

from tests.kit import ROOT as ROOT
from tests.kit import STAGES, TASKS, clean_environment, copy_working_tree, set_leaves
from tests.system.warm import FOLDER, OWNER, with_warm_commands
from transformer.commands.profiles import profile_params
from transformer.workflow.mlflow import open_store

# Before torch is loaded: the test processes share the cores, so more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
LONG = ("tracking", "workflow", "devices", "training", "corpora", "text", "decoding", "benchmarks", "project")
"""The folders of tests that take the longest, longest first."""
MEANWHILE = ROOT / "tests/system/tracking/test_runs.py"
"""It takes as long as the first run of `workflow`, and does without: the second process would wait for that."""
MEMORY, MEMORY_LEFT = 4 << 30, 4 << 30
"""Bytes that the tests' files may take, and that must be left for their processes."""


@dataclass(frozen=True)
class Clone:
    """A clone of the working tree with its own repository, and the profile `smoke` as its params.yaml."""

    root: Path
    environment: dict[str, str]
    commands: dict[str, str]
    """The environment, maybe with warm commands first on PATH; a program named by its path is a real process."""

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the virtual environment in the clone."""
        done = subprocess.run(
            command, cwd=self.root, env=self.commands, capture_output=True, text=True, timeout=400, check=False
        )
        assert not check or done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def start(self, *command: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """Start it in the background, in its own process group, with its output in a pipe."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.commands,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def repro(self, *targets: str) -> list[str]:
        """Run `dvc repro`; returns the stages that ran, in order, but for `code`, which always does."""
        output = self.run("dvc", "repro", *targets).stdout
        ran = (line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '"))
        return [name for name in ran if not name.startswith("code@")]

    def change(self, changes: dict[str, Any]) -> None:
        """Set dotted leaves of params.yaml."""
        set_leaves(self.params, changes)

    @property
    def params(self) -> Path:
        """The clone's params.yaml."""
        return self.root / "params.yaml"

    def commit(self, message: str) -> None:
        """Commit everything."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message)


def make_clone(root: Path, *, warm: bool = False, **more: str) -> Clone:
    """A committed copy of the working tree; warm: `run` uses warm commands (tests/warm)."""
    copy_working_tree(root, profile_params(ROOT, "smoke"))
    clone = clone_at(root, warm=warm, **more)
    clone.commit("start")
    return clone


def clone_at(root: Path, *, warm: bool = False, **more: str) -> Clone:
    """A repository that already exists."""
    environment = clean_environment(OMP_NUM_THREADS="1", **more)
    return Clone(root, environment, with_warm_commands(environment) if warm else environment)


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made by the first of the session's processes to ask for it; the others wait."""
    made = Path(os.environ[FOLDER], name)
    with FileLock(made.with_suffix(".lock")):
        if not made.exists():
            making = made.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            make(making)
            making.rename(made)
    return made


@pytest.fixture(scope="session")
def empty_database() -> Path:
    """A tracking store's database with empty tables: MLflow's migrations take 3 s."""

    def make(root: Path) -> None:
        root.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DVC_"))]:
                patch.delenv(name)
            open_store(root, "sentiment")
        with closing(sqlite3.connect(root / "mlflow.db")) as connection, connection:
            connection.execute("DELETE FROM experiments")

    return made_once("empty", make) / "mlflow.db"


@pytest.fixture(scope="session")
def workflow(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which the whole workflow has run and is committed. Tests leave it as they found it.

    It runs once; every process of the session has its own copy.
    """

    def make(root: Path) -> None:
        clone = make_clone(root, warm=True)
        shutil.copy(empty_database, root)
        assert len(clone.repro()) == len(STAGES) * len(TASKS)
        clone.commit("result")

    made = made_once("workflow", make)
    root = tmp_path_factory.mktemp("workflow") / "clone"
    store = shutil.ignore_patterns("mlflow.db*", "mlartifacts")  # it cannot be moved
    copied = clone_at(Path(shutil.copytree(made, root, symlinks=True, ignore=store)), warm=True)
    shutil.copy(empty_database, root)
    assert copied.run("transformer", "sync").stdout == "3 runs written\n"
    return copied


@pytest.fixture(scope="session")
def real_corpora() -> Path:
    """The folder of the real corpora; tests that need it are skipped if it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real corpora are not beside this checkout (../shared/data)")
    return folder


class Scheduler(LoadFileScheduling):  # type: ignore[misc]
    """Keeps the tests of a file in one process, and starts with the files that use `workflow`."""

    def _assign_work_unit(self, node: Any) -> None:
        if node is not self.nodes[0]:
            others = [scope for scope in self.workqueue if not uses_workflow(ROOT / scope)]
            chosen = others[0] if others else next(reversed(self.workqueue))
            self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


@cache
def uses_workflow(file: Path) -> bool:
    """Whether a file has tests that use the fixture `workflow`."""
    return "workflow: Clone" in file.read_text(encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Set the folder that the session's processes share; xdist's workers inherit it."""
    if FOLDER not in os.environ:
        if config.option.basetemp is None and (memory := memory_folder()) is not None:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)
        parent = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        os.environ[FOLDER], os.environ[OWNER] = tempfile.mkdtemp(prefix="tests-", dir=parent), str(os.getpid())


def memory_folder() -> str | None:
    """A file system in memory with enough space: on a disk, tests wait for it for a fifth of their time.

    Commits of git and SQLite wait until the disk has them.
    """
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return None
    place = os.statvfs(folder)
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(meminfo["MemAvailable"].split()[0]) * 1024
    free = min(place.f_bavail * place.f_frsize, available - MEMORY_LEFT)
    return str(folder) if free > MEMORY and not place.f_flag & os.ST_NOEXEC else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    if os.environ.get(OWNER) == str(os.getpid()):
        shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler | None:
    """The scheduler of `make test`; None leaves the choice to xdist."""
    return Scheduler(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Set torch back to one thread, after tests that ran a stage: with two, tiny models take three times the CPU."""
    try:
        yield
    finally:
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)


def pytest_collection_finish() -> None:
    """Garbage collection then leaves out all that is imported by now: a full one takes most of a second with it."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that use `workflow` first, then other long ones, so that all processes finish at the same time."""
    place = {ROOT / "tests" / name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: (not uses_workflow(item.path), place.get(item.path.parent, len(LONG))))
    first = items[0].path if items else None
    items.sort(key=lambda item: 0 if item.path == first else 1 if item.path == MEANWHILE else 2)
