"""Opens the tracking store: one writer at a time, with artifacts beside the database."""

import hashlib
import logging
import os
import random
import shlex
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock

from transformer.core.errors import UserError
from transformer.core.repository import repository
from transformer.tracking.location import Location, locate, without_password
from transformer.tracking.mlflow_inside import without_syncing
from transformer.tracking.moved import settle

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run
    from mlflow.tracking import MlflowClient

_LOCK_SECONDS = 300
_LETTERS = 300
_ATTEMPTS, _PAUSE_SECONDS = 4, 0.5
_Result = TypeVar("_Result")
_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
_UPLOAD_SECONDS = "600"
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    _TIMEOUT: "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it may contain a password
}


@dataclass(frozen=True)
class Store:
    """One task's experiment in the tracking store."""

    client: "MlflowClient"
    experiment_id: str
    root: Path


def find_root(directory: Path) -> Path:
    """The repository that owns the store, also that of a temporary clone. Raises ValueError outside of any."""
    root = repository(directory)
    if root is None:
        raise ValueError(f"{directory} is not in a DVC repository")
    return root


def in_words(error: Exception) -> str:
    """A store's error as one line: the database's own message if there is one, with passwords masked."""
    found = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    reason = " ".join(str(found).split())[:_LETTERS] or type(error).__name__
    return without_password(reason)


def existing(act: Callable[[], _Result]) -> _Result | None:
    """What `act` returns; None if the store does not have what it asks for, such as a deleted run."""
    from mlflow.exceptions import MlflowException

    try:
        return act()
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None


def quiet_mlflow() -> None:
    """Configure mlflow, before it is imported: no telemetry, errors only, and short timeouts for a dead server.

    Settings from the user's environment take precedence.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.pyfunc").setLevel(logging.ERROR)  # if mlflow was imported before
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it logs the errors that it raises


@contextmanager
def uploading() -> Iterator[None]:
    """Let a server take minutes for a model's file, which it answers when its own storage has it.

    A timeout of the user's environment stays.
    """
    if os.environ.get(_TIMEOUT) != _SETTINGS[_TIMEOUT]:
        yield
        return
    os.environ[_TIMEOUT] = _UPLOAD_SECONDS
    try:
        yield
    finally:
        os.environ[_TIMEOUT] = _SETTINGS[_TIMEOUT]


def waiting(root: Path) -> Path:
    """The folder, with one subfolder per task, of short stages' child runs that are not in MLflow yet."""
    return root / ".dvc" / "tmp" / "tracking" / "waiting"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Allow one writer at a time, for creating the database and for finding or creating a row.

    Writers on other machines are not locked out: unique.py removes what they write twice.
    """
    path = lock_path(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=_LOCK_SECONDS):
        yield


def lock_path(root: Path) -> Path:
    """The lock's file.

    A SQLite database's is beside it, so that all clones and worktrees that use it share the lock; a server's is per
    user and machine.
    """
    location = locate(root)
    if location.database is not None:
        return location.database.with_name(f"{location.database.name}.lock")
    users_store = f"{os.environ.get('HOME')} {location.uri}"
    return Path(tempfile.gettempdir()) / f"mlflow-{hashlib.sha256(users_store.encode()).hexdigest()[:16]}.lock"


def repeated(act: Callable[[], _Result]) -> _Result:
    """Call what a server may refuse because another writer does the same at the moment, up to four times.

    Two writers that create the same name, data set or version collide in the server's database.
    """
    from mlflow.exceptions import RestException

    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except RestException:
            time.sleep(random.uniform(0, _PAUSE_SECONDS))
    return act()


def all_runs(store: Store, filter_string: str) -> "Iterator[Run]":
    """The task's runs, page by page."""
    token = None
    while True:
        page = store.client.search_runs([store.experiment_id], filter_string, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def open_store(root: Path, task: str) -> Store:
    """Connect, creating the database and the task's experiment if they do not exist yet.

    A database that was moved or copied is repaired first (moved.py). Raises UserError when that fails or when the
    experiment cannot take runs, and what mlflow, its database or the connection raises.
    """
    quiet_mlflow()
    from mlflow.tracking import MlflowClient

    location = locate(root)
    database = location.database
    with locked(root), without_syncing(new=database is not None and not database.exists()):
        settle(location)
        client = MlflowClient(tracking_uri=location.uri, registry_uri=location.uri)
        return Store(client, repeated(lambda: _experiment(client, location, task)), root)


def _experiment(client: "MlflowClient", location: Location, task: str) -> str:
    """The id of the task's experiment, which is created if it does not exist."""
    experiment = client.get_experiment_by_name(task)
    if experiment is None:
        _check_place(location, task)
        return str(client.create_experiment(task, artifact_location=location.artifacts))
    _check(location, experiment)
    return str(experiment.experiment_id)


def _check_place(location: Location, task: str) -> None:
    if location.database is None and location.folder is None and not location.is_server:
        raise UserError(
            f"{location} has no place for artifacts: use a server in front of it, or set a place with"
            f" `mlflow experiments create --experiment-name {task} --artifact-location URI`"
        )


def _check(location: Location, experiment: "Experiment") -> None:
    if experiment.lifecycle_stage != "active":
        uri, number = shlex.quote(str(location)), experiment.experiment_id
        mlflow = f"MLFLOW_TRACKING_URI={uri} mlflow"
        database, note = uri, ""
        if location.is_server:
            database, note = "DATABASE", ", where DATABASE is what the server was started with"
        raise UserError(
            f"the experiment `{experiment.name}` is deleted in MLflow: restore it and its runs with"
            f" `{mlflow} experiments restore --experiment-id {number}`, or remove it permanently with"
            f" `{mlflow} gc --backend-store-uri {database} --experiment-ids {number}`{note}; then sync"
        )
    if location.folder is not None and not experiment.artifact_location.startswith(f"{location.folder.as_uri()}/"):
        raise UserError(
            f"{location.folder} was moved or copied from {experiment.artifact_location}, where new runs would still go:"
            " move it back, or use a database"
        )
