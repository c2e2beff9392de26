"""The child run of an executed stage: logged live with system metrics, or written later in one go."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.files import atomic_write
from transformer.results.chain import Chain
from transformer.results.origin import Origin
from transformer.tracking.store import Store, locked, waiting

if TYPE_CHECKING:
    from mlflow.entities import Metric
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

Event = dict[str, Any]
OUTPUT = "output"
"""The tag of a finished training with the MD5 of the model that it wrote: code is in no stage's key."""
PARTIAL = "partial"
"""Replaces the key of a stage that belongs to no result."""
_SYSTEM_METRICS_SECONDS = 10
_BATCH_POINTS = 1000  # MLflow's limit


@dataclass(frozen=True)
class Child:
    """One execution of a stage."""

    name: str
    tags: Mapping[str, str]
    started: int
    """Milliseconds, like all times in MLflow."""


def child_of(chain: Chain, stage: str, origin: Origin, started: int) -> Child:
    """The child run for the chain's stage that is executing.

    The run's name includes the experiment's: if later stages do not run, nothing else in MLflow shows it.
    A stage that did not read what the stages above wrote is not part of any result, so no row will adopt its run.
    """
    tags = {
        "mlflow.source.name": f"stages/{stage}.py",
        "task": chain.task,
        "stage": stage,
        "kind": "stage",
        "stage_key": chain.stage_key(stage) if chain.holds(stage) else PARTIAL,
        **origin.tags(),
    }
    name = chain.stage_run_name(stage)
    return Child(f"{name} ({origin.experiment})" if origin.experiment else name, tags, started)


def status_of(events: Iterable[Event]) -> str | None:
    """How the stage ended; None if the events do not say."""
    return next((str(event["status"]) for event in events if event.get("event") == "end"), None)


def write_live(
    store: Store, child: Child, batches: Iterable[Sequence[Event]], outcome: Callable[[], Mapping[str, str]]
) -> tuple[str, str]:
    """Log the run batch by batch, with system metrics, and the tags that `outcome` gives a stage that succeeded.

    Returns its id and the stage's status, which is KILLED if no event gives one.
    """
    run_id = _start(store, child)
    monitor = _system_metrics(store, run_id)
    status = None
    for batch in batches:
        _log(store, run_id, batch)
        status = status or status_of(batch)
    monitor.finish()
    status = status or "KILLED"
    if status == "FINISHED":
        for name, value in outcome().items():
            store.client.set_tag(run_id, name, value)
    store.client.set_terminated(run_id, status=status)
    return run_id, status


def _start(store: Store, child: Child) -> str:
    tags = dict(child.tags)
    run = store.client.create_run(store.experiment_id, start_time=child.started, run_name=child.name, tags=tags)
    return str(run.info.run_id)


def _log(store: Store, run_id: str, events: Sequence[Event]) -> None:
    for event in events:
        if event.get("event") == "resumed":
            store.client.set_tag(run_id, "resumed_after_step", str(event["step"]))
    points = _points(events)
    for start in range(0, len(points), _BATCH_POINTS):
        store.client.log_batch(run_id, metrics=points[start : start + _BATCH_POINTS])


def _points(events: Iterable[Event]) -> "list[Metric]":
    from mlflow.entities import Metric

    return [
        Metric(key=str(name), value=float(value), timestamp=int(event["time"]), step=int(event["step"]))
        for event in events
        if event.get("event") == "metrics"
        for name, value in event["values"].items()
    ]


def _system_metrics(store: Store, run_id: str) -> "SystemMetricsMonitor":
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(run_id, _SYSTEM_METRICS_SECONDS, tracking_uri=store.client.tracking_uri)
    monitor.start()
    return monitor


def keep(root: Path, child: Child, events: Sequence[Event]) -> None:
    """Save the events of a short, successful stage for the next process that opens MLflow, which is slow to open."""
    content = {"child": asdict(child), "events": events, "ended": int(time.time() * 1000)}
    with atomic_write(waiting(root) / child.tags["task"] / f"{child.started}-{child.name}.json") as stream:
        stream.write(json.dumps(content).encode())


def write_kept(store: Store, task: str) -> None:
    """Log the child runs that `keep` saved, once each."""
    with locked(store.root):
        for path in sorted((waiting(store.root) / task).glob("*.json")):
            content = json.loads(path.read_bytes())
            run_id = _start(store, Child(**content["child"]))
            _log(store, run_id, content["events"])
            store.client.set_terminated(run_id, status="FINISHED", end_time=content["ended"])
            path.unlink()
