"""The corpora, vocabularies and encoded stores that the measurements run on, made by the workflow's own stages."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML

from transformer.commands.profiles import use_profile
from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.core.params import read_params, stage_params
from transformer.core.schema import StageParams

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "benchmarks"
SAMPLE_ROWS = {"translation": 29_000, "sentiment": 22_500}
"""As many as the real corpora's train splits have."""
DATA_STAGES = ("download", "tokenize", "build_vocab")
_DATA_CODE = ("corpora", "params", "tasks", "text")

Params = TypeVar("Params", bound=StageParams)


class Workspace:
    """A folder with a params.yaml (the profile `seed`) and what the stages write, kept between measurements."""

    def __init__(self, root: Path, *, code: Path = ROOT) -> None:
        """code: the root of the package that stages run."""
        self.root, self.code = root, code

    def data(self, task: str) -> Path:
        """Where a task's `corpus`, `tokens`, `vocab` and `encoded` lie."""
        return self.root / "data" / task

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set dotted leaves of params.yaml."""
        yaml = YAML()
        content: Any = yaml.load(self.root / "params.yaml")
        for path, value in changes.items():
            *sections, leaf = path.split(".")
            section = content
            for name in sections:
                section = section[name]
            section[leaf] = value
        with atomic_write(self.root / "params.yaml") as stream:
            yaml.dump(content, stream)

    def params(self, task: str, schema: type[Params]) -> Params:
        """A stage's parameters."""
        return stage_params(read_params(self.root / "params.yaml"), task, schema, where=self.root / "params.yaml")

    def run(self, stage: str, task: str) -> None:
        """Run a stage. Raises UserError with its last line when it fails."""
        self.call(*self.command(stage, task))

    def call(self, *command: str) -> str:
        """Run a command in this folder; its output. Raises UserError with its last line when it fails."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"{' '.join(command[:4])} failed in {self.root}: {last}")
        return done.stdout

    def command(self, stage: str, task: str) -> list[str]:
        """What runs a stage."""
        return [sys.executable, "-m", f"stages.{stage}", task]

    def environment(self) -> dict[str, str]:
        """The environment of what runs here: this checkout's code, and no repository or server from outside.

        Nor what `prepare` has set for this process: an older commit's code would have it too.
        """
        own = ("DVC_", "MLFLOW_", "GIT_", "ONEDNN_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return inherited | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.code),
            "DVC_NO_ANALYTICS": "true",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }


def new_workspace(root: Path, *, data: Path | None = None, profile: str = "seed") -> Workspace:
    """An empty workspace at `root` with the corpora from `data`, or the sample corpora at the real ones' size."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "profiles").mkdir(exist_ok=True)
    shutil.copy(ROOT / "profiles" / f"{profile}.yaml", root / "profiles")
    (root / "params.yaml").unlink(missing_ok=True)
    use_profile(root, profile, data)
    workspace = Workspace(root)
    workspace.change({"runtime.tracking": False})
    if data is None:
        for task, rows in SAMPLE_ROWS.items():
            workspace.change({f"{task}.download.source": "sample", f"{task}.download.sample_rows.train": rows})
        workspace.change({"sentiment.vocab.source": "trained", "sentiment.vocab.max_size": 2000})
    return workspace


def prepared(task: str, data: Path | None) -> Workspace:
    """The workspace with a task's encoded store; made again when the corpora, parameters or code have changed."""
    if data is not None and not data.is_dir():
        raise UserError(f"there is no folder {data}: name the one that holds the real corpora, or leave it out")
    workspace = new_workspace(FOLDER / ("sample" if data is None else "real"), data=data)
    ensure(workspace, task, DATA_STAGES, data)
    return workspace


def ensure(workspace: Workspace, task: str, stages: Sequence[str], data: Path | None = None) -> None:
    """Run these stages, unless they ran before on the same parameters, code and corpora (the files under `data`)."""
    stamp, mark = _stamp(workspace, data), workspace.data(task) / "stamp"
    if not mark.is_file() or mark.read_text() != stamp:
        for stage in stages:
            print(f"  {stage}@{task}", file=sys.stderr)
            workspace.run(stage, task)
        with atomic_write(mark) as stream:
            stream.write(stamp.encode())


def clone(name: str, params: bytes) -> Workspace:
    """A copy of the working tree with these parameters and a DVC repository of its own."""
    root = FOLDER / name
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    for path in listed.stdout.decode().split("\0"):
        if path and (ROOT / path).is_file() and not path.startswith("reports/") and path != "dvc.lock":
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, root / path)
    (root / "params.yaml").write_bytes(params)
    subprocess.run(["git", "init", "-q", root], check=True)
    return Workspace(root, code=root)


def default_params() -> bytes:
    """The committed params.yaml, whatever profile is in place."""
    return subprocess.run(["git", "show", "HEAD:./params.yaml"], cwd=ROOT, capture_output=True, check=True).stdout


def _stamp(workspace: Workspace, data: Path | None) -> str:
    """Tells one state of parameters, code and corpora from another."""
    digest = hashlib.sha256((workspace.root / "params.yaml").read_bytes())
    for folder in _DATA_CODE:
        for path in sorted((ROOT / "transformer" / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    for path in sorted(data.rglob("*")) if data else ():
        digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
