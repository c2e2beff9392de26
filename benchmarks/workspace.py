"""The corpora, vocabularies and encoded stores for the benchmarks, made by the workflow's own stages."""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.kit import ROOT, clean_environment, set_leaves
from transformer.commands.profiles import profile_params
from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.core.params import read_params, stage_params
from transformer.core.validation import StageParams

FOLDER = ROOT / "build" / "benchmarks"
SAMPLE_ROWS = {"translation": 28_000, "sentiment": 22_500}
"""About the sizes of the real corpora's train splits."""

Params = TypeVar("Params", bound=StageParams)


class Workspace(NamedTuple):
    """A folder with a params.yaml (the profile `seed`) and the stages' outputs, kept between benchmarks."""

    root: Path

    def data(self, task: str) -> Path:
        """The folder with a task's `corpus`, `tokens`, `vocab` and `encoded`."""
        return self.root / "data" / task

    def params(self, task: str, schema: type[Params]) -> Params:
        return stage_params(read_params(self.root / "params.yaml"), task, schema, where=self.root / "params.yaml")

    def call(self, *arguments: str) -> str:
        """The output of Python in this folder, without what `prepare` has set for this process. Raises UserError."""
        command, environment = (sys.executable, *arguments), clean_environment(PYTHONPATH=str(ROOT))
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"{' '.join(arguments)} failed in {self.root}: {done.stderr.strip()}")
        return done.stdout


def new_workspace(root: Path, data: Path | None = None) -> Workspace:
    """A workspace at `root` with the corpora from `data`, or sample corpora of about the same size."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "params.yaml").write_text(profile_params(ROOT, "seed", data), encoding="utf-8")
    changes: dict[str, Any] = {"runtime.tracking": False}
    if data is None:
        for task, rows in SAMPLE_ROWS.items():
            changes |= {f"{task}.download.source": "sample", f"{task}.download.sample_rows.train": rows}
        changes |= {"sentiment.vocab.source": "trained", "sentiment.vocab.max_size": 2000}
    set_leaves(root / "params.yaml", changes)
    return Workspace(root)


def prepared(
    task: str, data: Path | None, stages: Sequence[str] = ("download", "tokenize", "build_vocab")
) -> Workspace:
    """The workspace with what these stages make; rebuilt when the corpora, parameters or code have changed."""
    if data is not None and not data.is_dir():
        raise UserError(f"there is no folder {data}: name the one with the real corpora, or leave it out")
    workspace = new_workspace(FOLDER / f"{'sample' if data is None else 'real'}-{stages[-1]}", data)
    stamp, mark = _stamp(workspace, data), workspace.data(task) / "stamp"
    if not mark.is_file() or mark.read_text() != stamp:
        mark.unlink(missing_ok=True)  # an interrupted change leaves outputs of two kinds
        for stage in stages:
            print(f"  {stage}@{task}", file=sys.stderr)
            workspace.call("-m", f"stages.{stage}", task)
        with atomic_write(mark) as stream:
            stream.write(stamp.encode())
    return workspace


def _stamp(workspace: Workspace, data: Path | None) -> str:
    """A digest of parameters, code and corpora."""
    digest = hashlib.sha256((workspace.root / "params.yaml").read_bytes())
    for path in sorted((ROOT / "transformer").rglob("*.py")):
        digest.update(path.read_bytes())
    for path in sorted(data.rglob("*")) if data else ():
        digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
