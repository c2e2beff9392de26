"""A real run of the workflow in a clone, shared by the tests that need one."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from xdist.scheduler import LoadFileScheduling

# Before torch is loaded: the tests' processes share the cores, and more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Clone:
    """A clone of the working tree with a repository of its own, and the profile `smoke` as its params.yaml."""

    root: Path
    environment: dict[str, str]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the virtual environment in the clone."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=400, check=False
        )
        assert not check or done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def start(self, *command: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """Run it in the background, in a process group of its own; what it prints can be read."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def repro(self, *targets: str) -> list[str]:
        """`dvc repro`; returns the stages that ran, in order."""
        output = self.run("dvc", "repro", *targets).stdout
        return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")]

    def change(self, changes: dict[str, Any]) -> None:
        """Set dotted leaves of params.yaml."""
        yaml = YAML()
        content = yaml.load(self.params)
        for path, value in changes.items():
            *sections, leaf = path.split(".")
            section = content
            for name in sections:
                section = section[name]
            section[leaf] = value
        yaml.dump(content, self.params)

    @property
    def params(self) -> Path:
        """The clone's params.yaml."""
        return self.root / "params.yaml"

    def commit(self, message: str) -> None:
        """Commit everything."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message)


def make_clone(root: Path, **environment: str) -> Clone:
    """Copy the working tree's files (tracked, and new ones that git does not ignore) and commit them."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        written = name == "dvc.lock" or (name.startswith("reports/") and not name.endswith(".gitignore"))
        if name and (ROOT / name).is_file() and not written:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "params.yaml").write_bytes((root / "profiles" / "smoke.yaml").read_bytes())
    base = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "MLFLOW_", "GIT_"))}
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{base['PATH']}",
        "OMP_NUM_THREADS": "1",
        "DVC_NO_ANALYTICS": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "GIT_AUTHOR_NAME": "test",
        "GIT_AUTHOR_EMAIL": "test@example.org",
        "GIT_COMMITTER_NAME": "test",
        "GIT_COMMITTER_EMAIL": "test@example.org",
    }
    clone = Clone(root, base | own | environment)
    clone.run("git", "init", "-q", "-b", "main")
    clone.commit("start")
    return clone


@pytest.fixture(scope="session")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which the whole workflow has run and is committed. Tests leave it as they found it."""
    clone = make_clone(tmp_path_factory.mktemp("workflow") / "clone")
    assert len(clone.repro()) == 16
    clone.commit("result")
    return clone


@pytest.fixture(scope="session")
def real_corpora() -> Path:
    """The folder of the real corpora; tests that want it are skipped where it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real corpora are not beside this checkout (../shared/data)")
    return folder


class Scheduler(LoadFileScheduling):  # type: ignore[misc]
    """Keeps the tests of a file in one process, and all those that use `workflow`, so that it runs once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "workflow" if "workflow: Clone" in (ROOT / file).read_text(encoding="utf-8") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler | None:
    """The scheduler of `make test`; None leaves the choice to xdist."""
    return Scheduler(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left with one while the other has nothing to do."""
    slow = (ROOT / "tests" / "tracking", ROOT / "tests" / "workflow")
    items.sort(key=lambda item: ("workflow" not in getattr(item, "fixturenames", ()), item.path.parent not in slow))
