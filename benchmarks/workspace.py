"""The corpora, vocabularies and encoded stores for the benchmarks, made by the workflow's own stages."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.kit import ROOT as ROOT
from tests.kit import clean_environment, copy_working_tree, set_leaves
from transformer.commands.profiles import profile_params, with_local_corpora
from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.core.params import read_params, stage_params
from transformer.core.schema import StageParams

FOLDER = ROOT / "build" / "benchmarks"
SAMPLE_ROWS = {"translation": 28_000, "sentiment": 22_500}
"""About the sizes of the real corpora's train splits."""
DATA_STAGES = ("download", "tokenize", "build_vocab")

Params = TypeVar("Params", bound=StageParams)


class Workspace:
    """A folder with a params.yaml (the profile `seed`) and the stages' outputs, kept between benchmarks."""

    def __init__(self, root: Path, *, code: Path = ROOT) -> None:
        """code: the folder of the packages that stages run."""
        self.root, self.code = root, code

    def data(self, task: str) -> Path:
        """The folder with a task's `corpus`, `tokens`, `vocab` and `encoded`."""
        return self.root / "data" / task

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set parameters in params.yaml, by dotted path."""
        set_leaves(self.root / "params.yaml", changes)

    def params(self, task: str, schema: type[Params]) -> Params:
        """A stage's parameters."""
        return stage_params(read_params(self.root / "params.yaml"), task, schema, where=self.root / "params.yaml")

    def run(self, stage: str, task: str) -> None:
        """Run a stage. Raises UserError with its last line when it fails."""
        self.call(*self.command(stage, task))

    def call(self, *command: str) -> str:
        """Run a command in this folder and return its output. Raises UserError with its last line when it fails."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"{' '.join(command[:4])} failed in {self.root}: {last}")
        return done.stdout

    def command(self, stage: str, task: str) -> list[str]:
        """The command that runs a stage."""
        return [sys.executable, "-m", f"stages.{stage}", task]

    def environment(self) -> dict[str, str]:
        """The environment for commands here: this checkout's code, and no outside repository or server.

        It also lacks what `prepare` has set for this process, which would affect an older commit's code too.
        """
        return clean_environment(PYTHONPATH=str(self.code))


def new_workspace(root: Path, *, data: Path | None = None, profile: str = "seed") -> Workspace:
    """An empty workspace at `root` with the corpora from `data`, or sample corpora of the same size."""
    root.mkdir(parents=True, exist_ok=True)
    params = profile_params(ROOT, profile)
    (root / "params.yaml").write_text(params if data is None else with_local_corpora(params, data), encoding="utf-8")
    workspace = Workspace(root)
    workspace.change({"runtime.tracking": False})
    if data is None:
        for task, rows in SAMPLE_ROWS.items():
            workspace.change({f"{task}.download.source": "sample", f"{task}.download.sample_rows.train": rows})
        workspace.change({"sentiment.vocab.source": "trained", "sentiment.vocab.max_size": 2000})
    return workspace


def prepared(task: str, data: Path | None, stages: Sequence[str] = DATA_STAGES) -> Workspace:
    """The workspace with what these stages make; rebuilt when the corpora, parameters or code have changed."""
    if data is not None and not data.is_dir():
        raise UserError(f"there is no folder {data}: name the one with the real corpora, or leave it out")
    name = "sample" if data is None else "real"
    workspace = new_workspace(FOLDER / (name if stages == DATA_STAGES else f"{name}-{stages[-1]}"), data=data)
    ensure(workspace, task, stages, data)
    return workspace


def ensure(workspace: Workspace, task: str, stages: Sequence[str], data: Path | None = None) -> None:
    """Run these stages unless they already ran with the same parameters, code and corpora (the files under `data`)."""
    stamp, mark = _stamp(workspace, data), workspace.data(task) / "stamp"
    if not mark.is_file() or mark.read_text() != stamp:
        mark.unlink(missing_ok=True)  # an interrupted change leaves outputs of two kinds
        for stage in stages:
            print(f"  {stage}@{task}", file=sys.stderr)
            workspace.run(stage, task)
        with atomic_write(mark) as stream:
            stream.write(stamp.encode())


def clone(name: str, params: str) -> Workspace:
    """A copy of the working tree with these parameters and its own DVC repository."""
    root = FOLDER / name
    copy_working_tree(root, params)
    return Workspace(root, code=root)


def _stamp(workspace: Workspace, data: Path | None) -> str:
    """A digest of parameters, code and corpora."""
    digest = hashlib.sha256((workspace.root / "params.yaml").read_bytes())
    for path in sorted((ROOT / "transformer").rglob("*.py")):
        digest.update(path.read_bytes())
    for path in sorted(data.rglob("*")) if data else ():
        digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
