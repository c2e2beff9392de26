"""Where the runs go: a server named by MLFLOW_TRACKING_URI, else `mlflow.db` and `mlartifacts/` in the root."""

import hashlib
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
_LOCK_SECONDS = 300
_LETTERS = 300
_PASSWORD = re.compile(r"//[^/@\s]+@")
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


@dataclass(frozen=True)
class Store:
    """One task's experiment in the tracking store."""

    client: "MlflowClient"
    experiment_id: str
    root: Path


def find_root(directory: Path) -> Path:
    """The repository that owns the store: DVC_ROOT inside a stage (also in a temporary clone), else the DVC root above.

    Raises ValueError outside of a DVC repository.
    """
    if given := os.environ.get("DVC_ROOT"):
        return Path(given)
    for folder in (directory.resolve(), *directory.resolve().parents):
        if (folder / ".dvc").is_dir():
            return folder
    raise ValueError(f"{directory} is in no DVC repository")


def tracking_uri(root: Path) -> str:
    """MLFLOW_TRACKING_URI, or the database in the root."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / DATABASE}"


def in_words(error: Exception) -> str:
    """An error of the store in one line, without the password of an address; a database's in its own words."""
    found = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    reason = " ".join(str(found).split())[:_LETTERS] or type(error).__name__
    return _PASSWORD.sub("//***@", reason)


def quiet_mlflow() -> None:
    """Set, before mlflow is imported, that it sends no telemetry, logs errors only and gives up on a dead server soon.

    What the user has set in the environment stays.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it logs the errors that it raises


def waiting(root: Path) -> Path:
    """Where short stages' child runs wait for MLflow, a folder a task."""
    return root / ".dvc" / "tmp" / "tracking" / "waiting"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """One writer at a time: for the creation of the database, and for finding or creating a row.

    A store that the environment names may have writers in other clones and worktrees: they meet at a lock of this
    user and machine. Writers on other machines are not kept out.
    """
    path = root / ".dvc" / "tmp" / "mlflow.lock"
    if os.environ.get("MLFLOW_TRACKING_URI"):
        users_store = f"{os.environ.get('HOME')} {tracking_uri(root)}"
        path = Path(tempfile.gettempdir()) / f"mlflow-{hashlib.sha256(users_store.encode()).hexdigest()[:16]}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=_LOCK_SECONDS):
        yield


@contextmanager
def _without_syncing(*, new: bool) -> Iterator[None]:
    """While a new database goes through its migrations, some 60 transactions, do not wait for the disk at each."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def relax(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    if new:
        event.listen(Engine, "connect", relax)
    try:
        yield
    finally:
        if new:
            event.remove(Engine, "connect", relax)


def open_store(root: Path, task: str) -> Store:
    """Connect, creating the database and the task's experiment if they are not there yet.

    Raises what mlflow, its database or the connection raises.
    """
    quiet_mlflow()
    from mlflow.tracking import MlflowClient

    uri, database = tracking_uri(root), root / DATABASE
    with locked(root), _without_syncing(new=uri == f"sqlite:///{database}" and not database.exists()):
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        experiment = client.get_experiment_by_name(task)
        if experiment is not None:
            return Store(client, experiment.experiment_id, root)
        location = (root / ARTIFACTS).as_uri() if uri.startswith("sqlite:") else None
        return Store(client, client.create_experiment(task, artifact_location=location), root)
