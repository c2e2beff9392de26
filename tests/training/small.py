"""A task up to training, small enough for tests: the profile `smoke` on a part of the sample corpus."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tests.kit import ROOT as ROOT
from tests.kit import fresh_profile
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.paths import Paths
from transformer.core.task import open_task

CODE = {"transformer/training/loop.py": "one"}
"""What the checkpoints are of."""
Changes = Mapping[str, Mapping[str, Any]]


def smoke(task: str, changes: Changes) -> dict[str, Any]:
    """The profile with changes by section, then leaf; a `model` that sets its kind replaces the whole section."""
    content = fresh_profile("smoke")
    for each in content.values():
        if "held_out" in each.get("download", {}):
            each["download"]["held_out"] = "data/local/none"  # no other task has run
    for section, values in changes.items():
        whole = section == "model" and "kind" in values
        content[task][section] = dict(values) if whole else content[task][section] | values
    return content


def run_stage(content: dict[str, Any], task: str, stage: str, paths: Paths, observer: Observer) -> None:
    """Run a stage in this process."""
    code = open_task(task).family.stage(stage)
    params = stage_params(content, task, code.Params, where=Path("smoke"))
    code.run(open_task(task), params, paths, observer)


def paths_in(root: Path, task: str, data: Path | None = None, **more: Any) -> Paths:
    """Where a task's stages write in a repository; data: of another place."""
    data = data or root / "data" / task
    return Paths(data=data, models=root / "models" / task, reports=root / "reports" / task, **more)


def prepare(content: dict[str, Any], task: str, data: Path) -> None:
    """Write the corpus, tokens, vocabularies and the encoded store into `data`."""
    for stage in ("download", "tokenize", "build_vocab"):
        run_stage(content, task, stage, Paths(data=data, models=data, reports=data), Observer())


def train(
    content: dict[str, Any], task: str, data: Path, root: Path, *, observer: Observer, states: Path | None = None
) -> None:
    """Train on the outputs of `prepare`; the results are in `root` as in a repository."""
    with own_torch_settings():
        run_stage(content, task, "train", paths_in(root, task, data, states=states, code=CODE), observer)


@contextmanager
def own_torch_settings() -> Iterator[None]:
    """Restore torch's number of threads and determinism afterwards."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode("default")


def outputs(root: Path) -> dict[str, bytes]:
    """All files of a folder, by relative path."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
