"""Replace this process with one of MLflow's servers: its UI, or its scoring server with a registered model."""

import json
import os
import secrets
import shlex
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from transformer.commands.server import ABOUT, LOOPBACK, TOKEN
from transformer.core.errors import UserError, printable
from transformer.inference.serving import DETAILS
from transformer.workflow.mlflow import (
    LONGEST_EXAMPLE,
    VIEW,
    in_words,
    is_server,
    is_there,
    open_store,
    store_uri,
    versions_of,
    without_password,
)
from transformer.workflow.results import WORKSPACE, find_results
from transformer.workflow.run import registered_name

_HOST = "127.0.0.1"
_EVERY = ("0.0.0.0", "::")  # addresses of this machine
_EXAMPLE = "serving_input_example.json"
_MODEL = "__pyfunc_model_path__"
"""The variable in which MLflow's scoring application finds its model."""


def show(root: Path, tasks: Iterable[str], port: int) -> None:
    """Replace this process with `mlflow ui`, local access only, after printing where each task's results are.

    Raises UserError for a server, which has a UI of its own.
    """
    uri = store_uri(root)
    if is_server(uri):
        raise UserError(f"the results are on a server, which has a UI of its own: open {without_password(uri)}")
    _require_free(port)
    try:
        for task in tasks:
            place = f"http://{_HOST}:{port}/#/experiments/{open_store(root, task).experiment_id}/runs"
            print(f"{task}: {place}?viewStateShareKey={VIEW}", flush=True)
    except UserError:
        raise
    except Exception as error:  # the boundary: what the database or the file system raises
        raise UserError(f"{without_password(uri)} cannot be opened: {in_words(error)}") from error
    settings = {"MLFLOW_BACKEND_STORE_URI": uri, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # no runner of jobs
    _become("ui", "--host", _HOST, "--port", str(port), **settings)


def serve(root: Path, task: str, model: str | None, host: str, port: int) -> None:
    """Replace this process with MLflow's scoring server and a page to try the model (server.py).

    Prints the page's address and a sample request before.

    model: a URI such as models:/NAME@ALIAS, or a folder; None for the registered model of the task's result in the
    workspace. host: the address to listen on; other machines need a token, which is printed. Raises UserError when
    there is no such model, or the port is taken.
    """
    _require_free(port, host)
    try:
        uri = _own(root, task) if model is None else _given(root, task, model)
        texts = _examples(uri)
        about = _about(uri, texts)
    except UserError:
        raise
    except Exception as error:  # the boundary: what the database, the connection or MLflow raises
        raise UserError(f"{model or f'the model of {task}'} cannot be served: {in_words(error)}") from error
    token = "" if host in LOOPBACK else secrets.token_urlsafe(16)
    bearer = f" -H 'Authorization: Bearer {token}'" if token else ""
    name = socket.gethostname() if host in _EVERY else f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/"
    content = {"dataframe_split": {"columns": ["text"], "data": [texts[:1] or ["..."]]}}
    request = json.dumps(content, ensure_ascii=False)
    request = shlex.quote(request if request.isprintable() else json.dumps(content))
    print(f"serving {printable(uri)}; once the log says that Uvicorn runs, open", flush=True)
    print(f"\n    {address}{f'#{token}' if token else ''}\n\nor ask it with\n", flush=True)
    print(f"    curl {address}invocations{bearer} -H 'Content-Type: application/json' -d {request}\n", flush=True)
    os.environ |= {_MODEL: uri, ABOUT: json.dumps(about)}
    if token:
        os.environ[TOKEN] = token
    program = Path(__file__).with_name("server.py")  # -P: beside it are modules with the names of libraries
    os.execv(sys.executable, [sys.executable, "-P", str(program), host, str(port)])


def _become(*command: str, **environment: str) -> NoReturn:
    """Replace this process with an mlflow command. Passwords may only be in the environment: commands are public."""
    os.environ.update(environment)
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", *command])


def _require_free(port: int, host: str = _HOST) -> None:
    """Raise UserError if the port is not available to a server."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except socket.gaierror as error:
            raise UserError(f"{host} is no address of this machine: choose another with --host") from error
        except (OSError, OverflowError) as error:
            raise UserError(
                f"port {port} is taken or not allowed on {host}: choose another with --port (make: PORT=)"
            ) from error


def _own(root: Path, task: str) -> str:
    """Return the version registered for the task's result in dvc.lock."""
    pipeline = find_results(root, WORKSPACE, task).results[task].pipeline
    name = registered_name(pipeline)
    client = open_store(root, task).client
    found = [v for v in versions_of(client, name, f" AND tags.key = '{pipeline.key}'") if is_there(client, v)]
    if not found:
        raise UserError(f"the workspace's result of {task} is not registered as {name}: run `transformer sync`")
    return f"models:/{name}/{found[0].version}"


def _given(root: Path, task: str, model: str) -> str:
    """Return the model at a URI or in a folder, resolving an alias to its version."""
    client = open_store(root, task).client
    from mlflow.models import get_model_info

    if model.startswith("models:/") and "@" in model:
        version = client.get_model_version_by_alias(*model.removeprefix("models:/").rsplit("@", 1))
        return f"models:/{version.name}/{version.version}"
    if ":/" not in model and not (Path(model) / "MLmodel").is_file():
        raise UserError(
            f"{model} is neither an MLflow model (MLmodel is missing) nor a URI like models:/NAME@best; without a model"
            " (make: MODEL=), the workspace's own is served"
        )
    get_model_info(model)
    return model


def _examples(uri: str) -> list[str]:
    """Return the texts of the model's example, but for long ones; none for a model without one of this form."""
    from mlflow.artifacts import load_text
    from mlflow.exceptions import MlflowException

    try:
        rows = json.loads(load_text(f"{uri}/{_EXAMPLE}"))["dataframe_split"]["data"]
    except (MlflowException, OSError, LookupError, TypeError, ValueError):
        return []
    return [row[0] for row in rows if len(row) == 1 and isinstance(row[0], str) and len(row[0]) <= LONGEST_EXAMPLE]


def _about(uri: str, texts: list[str]) -> dict[str, Any]:
    """Return the page's settings: title, the column of the answer, parameters with defaults, examples."""
    from mlflow.models import get_model_info

    signature = get_model_info(uri).signature
    given = signature.params.params if signature and signature.params else []
    params = {each.name: each.default for each in given}
    answers = signature.outputs.input_names() if signature and signature.outputs else []
    registered = uri.startswith("models:/")
    title = ", version ".join(uri.removeprefix("models:/").rsplit("/", 1)) if registered else Path(uri).resolve().name
    answer = answers[0] if answers else None
    return {"title": title, "answer": answer, "details": DETAILS in params, "params": params, "examples": texts}
