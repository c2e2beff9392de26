"""Where training spent its time: timings from its live metrics, kept beside the result, since outputs have no times."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer.core.files import atomic_write
from transformer.core.repository import repository
from transformer.results.chain import Chain, trained_path
from transformer.results.workspace import md5_of_folder

TRAIN = "train"
Event = dict[str, Any]
Point = dict[str, float]
_KEPT = 50
"""Training runs per task whose timings are kept."""


def noted(batches: Iterable[list[Event]], directory: Path, root: Path, task: str) -> Iterator[list[Event]]:
    """Pass a training run's events through; if it finishes, store its timings.

    They are stored under the hash of the model that it wrote in `directory`, so every model has its own timings.
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
    """The timings of this chain's training run, in the order of its updates; empty if it did not run here."""
    try:
        path = _folder(repository(root) or root, chain.task) / f"{chain.outs.get(trained_path(chain.task))}.json"
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
