"""Where a training spent its time: what its live points told, kept beside the result. No output holds times."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer.core.files import atomic_write
from transformer.results.chain import Chain, trained_path
from transformer.results.workspace import md5_of_folder

TRAIN = "train"
Event = dict[str, Any]
Point = dict[str, float]
_KEPT = 50
"""Trainings of a task whose times stay."""


def noted(batches: Iterable[list[Event]], directory: Path, root: Path, task: str) -> Iterator[list[Event]]:
    """Pass a training's events through; once it has ended well, keep its points that tell times.

    They are kept under the hash of the model that it left in `directory`: a result with another one has other times.
    """
    points: list[Point] = []
    for batch in batches:
        for event in batch:
            if event.get("event") == "metrics":
                times = {name: value for name, value in event["values"].items() if "second" in name}
                points += [{"step": event["step"], **times}] if times else []
            if event.get("status") == "FINISHED" and points:
                _write(_folder(root, task), md5_of_folder(directory / trained_path(task)), points)
        yield batch


def times_of(root: Path, chain: Chain) -> list[Point]:
    """The points of the training in this chain, in the order of its updates; none where it did not run here."""
    root = Path(os.environ.get("DVC_ROOT") or root)  # a temporary clone's parent, as for MLflow's store
    try:
        path = _folder(root, chain.task) / f"{chain.outs.get(trained_path(chain.task))}.json"
        points: list[Point] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    return points


def _write(folder: Path, name: str, points: Sequence[Point]) -> None:
    with atomic_write(folder / f"{name}.json") as stream:
        stream.write(json.dumps(points).encode())
    for old in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
        old.unlink(missing_ok=True)


def _folder(root: Path, task: str) -> Path:
    return root / ".dvc" / "tmp" / "tracking" / "times" / task
