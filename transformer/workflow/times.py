"""Times when the stages of a result ran. Outputs contain no times, so that they are reproducible."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.code import ran_path
from transformer.core.files import write_json
from transformer.core.repository import repository
from transformer.workflow.dvc import content_md5
from transformer.workflow.pipeline import STAGES
from transformer.workflow.results import Result

Point = dict[str, float]


class Times(NamedTuple):
    """Times of a stage's run on this machine, and its speed."""

    start: float
    """Seconds since 1970."""
    end: float
    points: list[Point]
    """Training times in seconds and rates, by `step`."""


def note_times(task: str, stage: str, start: float, end: float, sent: Iterable[Any]) -> None:
    """Note a stage's times when its record of what it ran with is written; sent: its live metrics."""
    points = [{"step": event["step"], **_rates(event["values"])} for event in sent if _rates(event["values"])]
    write_json(_path(Path.cwd(), task, stage, run_of(task, stage)), Times(start, end, points)._asdict())


def run_of(task: str, stage: str) -> str:
    """Return a hash of what a stage and earlier ones ran with, according to the files in the current folder."""
    return _digest(stage, lambda each: _content(Path(ran_path(each, task))))


def times_of(result: Result, stage: str) -> Times | None:
    """Return the newest times of a stage that ran as the result's, after stages that did; None if none has here."""
    run = _digest(stage, lambda each: result.read(ran_path(each, result.task)) or b"")
    try:
        return Times(**json.loads(_path(result.root, result.task, stage, run).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _digest(stage: str, read: Callable[[str], bytes]) -> str:
    return content_md5(b"".join(read(each) for each in STAGES[: STAGES.index(stage) + 1]))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _rates(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if "second" in name}


def _path(folder: Path, task: str, stage: str, run: str) -> Path:
    return (repository(folder) or folder) / ".dvc" / "tmp" / "times" / task / f"{stage}-{run}.json"
