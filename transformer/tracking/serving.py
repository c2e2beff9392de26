"""Serves a registered model with MLflow's scoring server."""

import json
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer.core.errors import UserError
from transformer.core.files import has_conflict
from transformer.results.chain import chains_in_lock
from transformer.results.lockfile import LOCK, RESOLVE
from transformer.results.naming import registered_name
from transformer.tracking.alias import living_run
from transformer.tracking.location import locate
from transformer.tracking.mlflow_inside import global_uri
from transformer.tracking.store import in_words, open_store, quiet_mlflow

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

_HOST = "127.0.0.1"
_EXAMPLE = "serving_input_example.json"


class Served(NamedTuple):
    """A model that the server can load."""

    uri: str
    title: str


def serve(root: Path, task: str, model: str | None, port: int) -> None:
    """Replace this process with `mlflow models serve`, local access only, after saying how to ask it.

    model: a URI such as models:/NAME@ALIAS, or a folder; None for the registered model of the task's result in the
    workspace. Raises UserError when there is no such model, or the port is taken.
    """
    quiet_mlflow()
    require_free(port)
    tracking_uri = locate(root).uri
    try:
        served = _own(root, task) if model is None else _given(root, task, model)
        request = _request(served.uri, tracking_uri)
    except UserError:
        raise
    except Exception as error:  # the boundary: what the database, the connection or MLflow raises
        raise UserError(f"{model or f'the model of {task}'} cannot be served: {in_words(error)}") from error
    address = f"http://{_HOST}:{port}/invocations"
    print(f"serving {served.title}; once the log says that Uvicorn runs, ask it with\n", flush=True)
    print(f"    curl {address} -H 'Content-Type: application/json' -d {shlex.quote(request)}\n", flush=True)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # MLflow runs uvicorn
    os.environ["MLFLOW_TRACKING_URI"] = tracking_uri
    command = ["-m", "mlflow", "models", "serve", "--model-uri", served.uri, "--env-manager", "local"]
    os.execv(sys.executable, [sys.executable, *command, "--host", _HOST, "--port", str(port)])


def require_free(port: int) -> None:
    """Raises UserError if no server can take the port."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((_HOST, port))
        except (OSError, OverflowError) as error:
            raise UserError(f"port {port} is taken or not allowed: choose another with --port (make: PORT=)") from error


def _own(root: Path, task: str) -> Served:
    """The version registered for the task's result in dvc.lock."""
    from transformer.tracking.model import versions_of

    lock = (root / LOCK).read_bytes() if (root / LOCK).exists() else b""
    if has_conflict(lock):
        raise UserError(f"{LOCK} has conflict markers: {RESOLVE}")
    chain = next((chain for chain in chains_in_lock(lock) if chain.task == task), None)
    if chain is None:
        raise UserError(f"the workspace has no complete result of {task} to serve: run `dvc repro`, or name a --model")
    name = registered_name(chain)
    client = open_store(root, task).client
    found = [each for each in versions_of(client, name, chain.row_key()) if living_run(client, each.run_id)]
    if not found:
        raise UserError(f"the workspace's result of {task} is not registered as {name}: run `transformer sync`")
    return _version(found[0])


def _given(root: Path, task: str, model: str) -> Served:
    """The model of a URI, or in a folder."""
    from mlflow.models import get_model_info

    if ":/" in model:
        client, name = open_store(root, task).client, model.removeprefix("models:/")
    if model.startswith("models:/") and "@" in model:
        return _version(client.get_model_version_by_alias(*name.rsplit("@", 1)))
    if ":/" not in model and not (Path(model) / "MLmodel").is_file():
        raise UserError(
            f"{model} is neither an MLflow model (MLmodel is missing) nor a URI like models:/NAME@best; without a model"
            " (make: MODEL=), the workspace's own is served"
        )
    with global_uri(locate(root).uri):
        get_model_info(model)
    return Served(model, model)


def _version(version: "ModelVersion") -> Served:
    return Served(f"models:/{version.name}/{version.version}", f"{version.name}, version {version.version}")


def _request(uri: str, tracking_uri: str) -> str:
    """The model's example as a request's body."""
    from mlflow.artifacts import load_text
    from mlflow.exceptions import MlflowException

    with global_uri(tracking_uri):
        try:
            content: Any = json.loads(load_text(f"{uri}/{_EXAMPLE}"))
        except (MlflowException, OSError):  # a model without an example
            content = {"dataframe_split": {"columns": ["text"], "data": [["..."]]}}
    return json.dumps(content, ensure_ascii=False)
