"""The observer of one executing stage: `python -m transformer.tracking.live TASK STAGE`, events on standard input.

Whatever goes wrong here stays here: the stage does not notice, and the exit code is 0.
"""

import json
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transformer.tracking.chain import Chain, running_chain
from transformer.tracking.origin import current_origin
from transformer.tracking.store import Store, find_root, open_store

if TYPE_CHECKING:
    from mlflow.entities import Metric
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

_BATCH_SECONDS = 1.0
_BATCH_POINTS = 500
_SYSTEM_METRICS_SECONDS = 10
Event = dict[str, Any]
Events = queue.SimpleQueue[Event | None]


def read_events(stream: IO[str], events: Events) -> None:
    """Queue every event of the stream, then None, so that the stage never waits. Broken lines are left out."""
    for line in stream:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.put(event)
    events.put(None)


def batches(events: Events) -> Iterator[list[Event]]:
    """The events as they come, in batches of at most a second or 500; ends when the stream does."""
    batch: list[Event] = []
    due = time.monotonic() + _BATCH_SECONDS
    while True:
        try:
            event = events.get(timeout=max(due - time.monotonic(), 0.0))
        except queue.Empty:
            event = {}
        if event:
            batch.append(event)
        if event is None or time.monotonic() >= due or len(batch) >= _BATCH_POINTS:
            if batch:
                yield batch
            batch, due = [], time.monotonic() + _BATCH_SECONDS
        if event is None:
            return


def points(batch: list[Event]) -> "list[Metric]":
    """The metric points of a batch of events."""
    from mlflow.entities import Metric

    return [
        Metric(key=str(name), value=float(value), timestamp=int(event["time"]), step=int(event["step"]))
        for event in batch
        if event.get("event") == "metrics"
        for name, value in event["values"].items()
    ]


def observe(events: Events, chain: Chain, store: Store, started: int) -> str:
    """Write the child run of the stage that executes now, until its events end. Returns the run's final status."""
    client = store.client
    name = chain.stages[-1].name
    tags = {
        "mlflow.source.name": f"stages/{name}.py",
        "task": chain.task,
        "stage": name,
        "kind": "stage",
        "stage_key": chain.stage_key(name),
        **current_origin(store.root).tags(),
    }
    run = client.create_run(store.experiment_id, start_time=started, run_name=chain.stage_run_name(name), tags=tags)
    run_id = run.info.run_id
    monitor = _system_metrics(run_id, store)
    status = "KILLED"
    for batch in batches(events):
        if metrics := points(batch):
            client.log_batch(run_id, metrics=metrics)
        status = next((str(event["status"]) for event in batch if event.get("event") == "end"), status)
    monitor.finish()
    client.set_terminated(run_id, status=status)
    return status


def _system_metrics(run_id: str, store: Store) -> "SystemMetricsMonitor":
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(
        run_id, sampling_interval=_SYSTEM_METRICS_SECONDS, tracking_uri=store.client.tracking_uri
    )
    monitor.start()
    return monitor


def follow(task: str, stage: str, events: Events, started: int) -> None:
    """Observe the stage; when `export` has finished, write the row of the result that it completes."""
    directory = Path.cwd()
    chain = running_chain(directory, task, stage)
    store = open_store(find_root(directory), task)
    status = observe(events, chain, store, started)
    if stage == "export" and status == "FINISHED":
        from transformer.tracking.content import WorkspaceContent
        from transformer.tracking.rows import write_row

        write_row(store, chain, WorkspaceContent(directory), current_origin(store.root))


def main(arguments: list[str]) -> int:
    """Follow one stage to its end. Always returns 0: tracking never fails a stage."""
    started = int(time.time() * 1000)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    events: Events = queue.SimpleQueue()
    reader = threading.Thread(target=read_events, args=(sys.stdin, events), daemon=True)
    reader.start()
    try:
        task, stage = arguments
        follow(task, stage, events, started)
    except Exception as error:  # the boundary: no fault of the tracking may reach the stage
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        print(f"tracking: {reason}; run `transformer sync` later", file=sys.stderr, flush=True)
    reader.join()  # the stage may still write
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
