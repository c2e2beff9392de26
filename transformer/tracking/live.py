"""Observes one executing stage: `python -m transformer.tracking.live TASK STAGE`, with events on standard input.

Failures here never reach the stage, and the exit code is always 0.
"""

import json
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain as concatenated
from pathlib import Path
from typing import IO

from transformer.results.chain import (
    CONVERT,
    REPORT,
    STAGES,
    VIEWS,
    Chain,
    bundle_path,
    chains_in_lock,
    conversion_path,
    running_chain,
    trained_path,
    with_view,
)
from transformer.results.lockfile import LOCK
from transformer.results.naming import export_params, registered_name
from transformer.results.origin import current_origin, origin_of
from transformer.results.partial import in_words as partial_in_words
from transformer.results.times import TRAIN, noted
from transformer.results.workspace import hashes, md5_of_folder
from transformer.tracking.child import OUTPUT, Event, child_of, keep, status_of, write_kept, write_live
from transformer.tracking.store import Store, find_root, in_words, open_store

_BATCH_SECONDS = 5.0
_BATCH_EVENTS = 500
# Importing MLflow and opening its database takes 2.5 s of CPU time. A stage that ends sooner than this leaves that to
# the next one, so that logging costs less than 2 % of any training run.
SHORT_SECONDS = 180.0
_LAST = STAGES[-1]
Events = queue.SimpleQueue[Event | None]


class PartialResultError(Exception):
    """The stages in dvc.lock do not belong together, so there is no result to record."""


class ChangedError(Exception):
    """The stage's dependencies or parameters changed while it ran, so there is no result to record."""


def read_events(stream: IO[str], events: Events) -> None:
    """Queue every event of the stream, then None, so that the stage never waits. Malformed lines are skipped."""
    for line in stream:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.put(event)
    events.put(None)


def batches(events: Events, *, seconds: float) -> Iterator[list[Event]]:
    """Yield the events in batches of at most 5 s (the first: `seconds`) or 500 events until the stream ends."""
    ended = False
    while not ended:
        batch: list[Event] = []
        due = time.monotonic() + seconds
        while not ended and len(batch) < _BATCH_EVENTS and (left := due - time.monotonic()) > 0:
            try:
                event = events.get(timeout=left)
            except queue.Empty:
                break
            if event is None:
                ended = True
            else:
                batch.append(event)
        yield batch
        seconds = _BATCH_SECONDS


def follow(task: str, stage: str, events: Events, started: int) -> None:
    """Observe the stage. After `export`, write the result's row; after `convert` and `report`, add the row's views."""
    directory = Path.cwd()
    root = find_root(directory)
    if stage == REPORT:
        _complete_row(task, directory, root, events)
        return
    chain = running_chain(directory, task, stage)
    child = child_of(chain, stage, current_origin(root), started)
    stream = batches(events, seconds=0.0 if stage in (_LAST, CONVERT) else SHORT_SECONDS)
    if stage == TRAIN:
        stream = noted(stream, directory, root, task)
    outcome = partial(_outcome, directory, task, stage)
    beginning = next(stream)
    if status_of(beginning) == "FINISHED" and stage not in (_LAST, CONVERT):
        keep(root, replace(child, tags={**child.tags, **outcome()}), beginning)
        return
    store = open_store(root, task)
    write_kept(store, task)
    run_id, status = write_live(store, child, concatenated([beginning], stream), outcome)
    if stage == _LAST and status == "FINISHED":
        if chain.stale:
            raise PartialResultError(partial_in_words(chain, LOCK))
        try:
            _write_row(store, chain, directory, root, running=True)
        except ChangedError:
            store.client.set_terminated(run_id, status="FAILED")
            raise
    if stage == CONVERT and status == "FINISHED" and not chain.stale and chain.holds(CONVERT):
        _write_row(store, _with_converted(chain, directory), directory, root)


def _outcome(directory: Path, task: str, stage: str) -> dict[str, str]:
    """Tags of a finished run."""
    return {OUTPUT: md5_of_folder(directory / trained_path(task))} if stage == TRAIN else {}


def _with_converted(chain: Chain, directory: Path) -> Chain:
    """The chain with what `convert` has just written: DVC records it only when the stage has ended."""
    from dvc.repo import Repo

    running = chain.view(CONVERT)
    assert running is not None
    with Repo(str(directory)) as repo:
        written = hashes(repo, (VIEWS[CONVERT].path(chain.task), conversion_path(chain.task)))
    return with_view(chain, replace(running, outs={path: md5 for path, md5 in written.items() if md5}))


def _write_row(store: Store, chain: Chain, directory: Path, root: Path, *, running: bool = False) -> None:
    """running: the last stage is waiting for the row, and then checks its inputs once more (`unchanged.py`)."""
    from dvc.repo import Repo

    from transformer.results.content import Content
    from transformer.tracking.alias import holder, moved_in_words
    from transformer.tracking.rows import write_row

    def confirm() -> None:
        """Check the stage's inputs, as the stage itself will: writing the row's content took seconds."""
        if running and running_chain(directory, chain.task, _LAST).stages[-1] != chain.stages[-1]:
            raise ChangedError(f"{_LAST}@{chain.task}: no row written: something changed while the stage ran")

    with Repo(str(directory)) as repo:
        content = Content(repo, chain, fresh=bundle_path(chain.task) if running else None)
        name, alias = registered_name(chain), str(export_params(chain)["alias"])
        before = holder(store.client, name, alias)
        # A row that is missing, as in a fresh clone's store, is of a result that was made before.
        write_row(store, chain, content, current_origin(root) if running else origin_of(root, chain), confirm)
    if moved := moved_in_words(before, holder(store.client, name, alias), alias):
        print(f"tracking: {moved}", file=sys.stderr, flush=True)


def _complete_row(task: str, directory: Path, root: Path, events: Events) -> None:
    """Add its views to the row of the result in dvc.lock; they did not exist when `export` ended."""
    if not any(status_of(batch) == "FINISHED" for batch in batches(events, seconds=0.0)):
        return
    store = open_store(root, task)
    write_kept(store, task)
    for chain in chains_in_lock((directory / LOCK).read_bytes()):
        if chain.task == task:
            _write_row(store, chain, directory, root)


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
    except (PartialResultError, ChangedError) as error:
        print(f"tracking: {error}", file=sys.stderr, flush=True)
    except Exception as error:  # the boundary: no tracking error may reach the stage
        print(f"tracking: {in_words(error)}; run `transformer sync` later", file=sys.stderr, flush=True)
    reader.join()  # the stage may still be writing
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
