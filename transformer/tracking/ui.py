"""Runs MLflow's UI on the store that the workflow writes to."""

import os
import sys
from pathlib import Path

from transformer.core.errors import UserError
from transformer.tracking.location import locate
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
        with locked(root):
            settle(location)
    except UserError:
        raise
    except Exception as error:  # the boundary: what the database or the file system raises
        raise UserError(f"{location} cannot be opened: {in_words(error)}") from error
    quiet_mlflow()
    command = ["-m", "mlflow", "ui", "--backend-store-uri", location.uri, "--host", "127.0.0.1", "--port", str(port)]
    os.execv(sys.executable, [sys.executable, *command])
