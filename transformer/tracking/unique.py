"""Keeps one row per result, also when several machines write the same one to a server at the same moment.

MLflow cannot make a tag unique, so writers agree afterwards: each writes its whole row, marks it FINISHED, and then
reads all rows with its key. The smallest run id stays; the others go to MLflow's trash. Whoever finishes last sees
everything that the others finished, so one row is left, whichever of them dies at whatever moment, and whatever their
clocks say.
"""

import hashlib
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.tracking.alias import remove_versions
from transformer.tracking.store import Store, all_runs, lock_path

if TYPE_CHECKING:
    from mlflow.entities import Run

RESULT = "result"
PARENT = "mlflow.parentRunId"
WRITER = "writer"
"""The tag of a row that is being written: by whom, and since when."""
_FINISHED = "FINISHED"
_ABANDONED_SECONDS = 86_400


def writer(root: Path) -> str:
    """The value of the tag `WRITER` for a row that is written from here, by the holder of the store's lock."""
    return f"{_identity(root)} {int(time.time())}"


def settled_row(store: Store, row_key: str) -> "Run | None":
    """The row with this key; None if none is complete. The caller holds the store's lock.

    Removes other rows with the key: those that a concurrent writer has finished too, and what a dead one left behind.
    """
    with_key = f"tags.row_key = '{row_key}' AND tags.kind = '{RESULT}'"
    return _settle(store, all_runs(store, with_key))


def settle_rows(store: Store) -> None:
    """Do the same for all rows of the task, as after writers that died before they could. The caller holds the lock."""
    by_key: dict[str, list[Run]] = {}
    for run in all_runs(store, f"tags.kind = '{RESULT}'"):
        by_key.setdefault(run.data.tags["row_key"], []).append(run)
    for runs in by_key.values():
        _settle(store, runs)


def discard_row(store: Store, run_id: str) -> None:
    """Move a row to the trash, with its logged model; its registered versions are deleted."""
    remove_versions(store.client, run_id)
    for model in store.client.search_logged_models([store.experiment_id], f"source_run_id = '{run_id}'"):
        store.client.delete_logged_model(model.model_id)
    store.client.delete_run(run_id)


def move_children(store: Store, run_id: str, kept_id: str) -> None:
    """Give the stages' runs of a discarded row to the one that stays."""
    for child in all_runs(store, f"tags.`{PARENT}` = '{run_id}'"):
        store.client.set_tag(child.info.run_id, PARENT, kept_id)


def _settle(store: Store, runs: "Iterable[Run]") -> "Run | None":
    rows = sorted(runs, key=lambda run: str(run.info.run_id))
    kept = next((run for run in rows if run.info.status == _FINISHED), None)
    for run in rows:
        if run.info.status != _FINISHED:
            if _is_abandoned(store, run):
                discard_row(store, run.info.run_id)
        elif kept is not None and run is not kept:
            discard_row(store, run.info.run_id)
            move_children(store, run.info.run_id, kept.info.run_id)
    return kept


def _is_abandoned(store: Store, run: "Run") -> bool:
    """Whether nobody writes this unfinished row any more.

    Whoever holds the lock knows that of all who take the same one. A machine that never comes back is waited for a
    day; removing the row of a writer that is alive, as with a wrong clock, costs that writer one line and a `sync`.
    """
    identity, _, since = run.data.tags[WRITER].partition(" ")
    return identity == _identity(store.root) or time.time() - int(since) > _ABANDONED_SECONDS


def _identity(root: Path) -> str:
    return f"{socket.gethostname()}/{hashlib.sha256(str(lock_path(root)).encode()).hexdigest()[:16]}"
