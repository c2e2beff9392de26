"""Runs MLflow's UI on the store that the workflow writes to."""

import os
import sys
from pathlib import Path

from transformer.core.errors import UserError
from transformer.tracking.location import Location, locate
from transformer.tracking.moved import settle
from transformer.tracking.serving import require_free
from transformer.tracking.store import in_words, locked, quiet_mlflow


def serve(root: Path, port: int) -> None:
    """Replace this process with `mlflow ui`, local access only, after repairing a moved store. Refuses a server."""
    location = locate(root)
    if location.is_server:
        raise UserError(f"the results are on a server, which has a UI of its own: open {location}")
    require_free(port)
    try:
        quiet_mlflow()
        with locked(root):
            settle(location)
        if location.database is None:
            _open(location)
    except UserError:
        raise
    except Exception as error:  # the boundary: what the database or the file system raises
        raise UserError(f"{location} cannot be opened: {in_words(error)}") from error
    os.environ["MLFLOW_BACKEND_STORE_URI"] = location.uri  # it may contain a password: processes' commands are public
    command = ["-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", str(port)]
    os.execv(sys.executable, [sys.executable, *command])


def _open(location: Location) -> None:
    """Ask a store for something. Raises what MLflow raises for an address that it cannot open."""
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=location.uri).search_experiments(max_results=1)
