"""When the stages of a result worked. Outputs have no times, so that they are the same everywhere."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.code import ran_path
from transformer.core.files import json_bytes, write_json
from transformer.core.repository import repository
from transformer.workflow.dvc import content_md5
from transformer.workflow.results import Result

Point = dict[str, float]


class Times(NamedTuple):
    """When a stage ran here, and how fast."""

    start: float
    """Seconds since 1970."""
    end: float
    points: list[Point]
    """Seconds and rates in training, by `step`."""


def note_times(task: str, stage: str, ran: Mapping[str, Any], start: float, end: float, sent: Iterable[Any]) -> None:
    """Note a stage's times; ran: its record of what it ran with; sent: its live metrics."""
    points = [{"step": event["step"], **_rates(event["values"])} for event in sent if _rates(event["values"])]
    write_json(_path(Path.cwd(), task, stage, json_bytes(ran)), Times(start, end, points)._asdict())


def times_of(result: Result, stage: str) -> Times | None:
    """The newest times of a stage with the result's parameters and code; None if it has not run here."""
    ran = result.read(ran_path(stage, result.task))
    try:
        return Times(**json.loads(_path(result.root, result.task, stage, ran or b"").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _rates(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if "second" in name}


def _path(folder: Path, task: str, stage: str, ran: bytes) -> Path:
    return (repository(folder) or folder) / ".dvc" / "tmp" / "times" / task / f"{stage}-{content_md5(ran)}.json"
