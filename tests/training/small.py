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
from transformer.core.task import family_module, open_task
from transformer.training.stage import TrainingPaths

OUTPUTS = {
    "trained": "models/{}/trained",
    "metrics": "reports/{}/training.json",
    "history": "reports/{}/history.tsv",
    "updates": "reports/{}/updates.tsv",
}
"""The outputs of the train stage, by argument; {} is the task."""
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


def run_stage(content: dict[str, Any], task: str, stage: str, *, observer: Observer, **paths: Any) -> None:
    """Run a stage in this process."""
    module = family_module(open_task(task), stage)
    params = stage_params(content, task, module.Params, where=Path("smoke"))
    module.run(open_task(task), params, observer=observer, **paths)


def prepare(content: dict[str, Any], task: str, data: Path) -> None:
    """Write the corpus, tokens, vocabularies and the encoded store into `data`."""
    observer = Observer()
    run_stage(content, task, "download", output=data / "corpus", observer=observer)
    run_stage(content, task, "tokenize", corpus=data / "corpus", tokens=data / "tokens", observer=observer)
    written = {name: data / name for name in ("vocab", "encoded", "statistics")}
    run_stage(content, task, "build_vocab", tokens=data / "tokens", observer=observer, **written)


def train(
    content: dict[str, Any], task: str, data: Path, root: Path, *, observer: Observer, states: Path | None = None
) -> None:
    """Train on the outputs of `prepare`; the results are in `root` as in a repository."""
    out: dict[str, Any] = {name: root / path.format(task) for name, path in OUTPUTS.items()}
    with own_torch_settings():
        paths = TrainingPaths(encoded=data / "encoded", vocab=data / "vocab", states=states, code=CODE, **out)
        run_stage(content, task, "train", observer=observer, paths=paths)


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
