"""What is served is what was asked for: the project's own version, its own code, and texts as they were sent."""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT, clean_environment, free_port, start_server, stop_server
from transformer.workflow.mlflow import save_model

NAME = "a-model"
TEXTS = ["NA", "null", "nan", "None", "007", "1e5", "true", "2024-01-01", "a, b", "", "good"]


@pytest.fixture(scope="module")
def saved(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The MLflow models of two tasks."""
    folder = tmp_path_factory.mktemp("saved")
    for task in ("sentiment", "translation"):
        save_model(folder / task, bundles[task], task)
    return {task: folder / task for task in ("sentiment", "translation")}


def register(store: str, model: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(store, store)
    client.create_registered_model(NAME)
    client.create_model_version(NAME, model.as_uri())
    client.set_registered_model_alias(NAME, "best", "1")


@pytest.fixture(scope="module")
def address(saved: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the project's version 1, started in a shell with MLflow's variables of another project."""
    root = tmp_path_factory.mktemp("workspace")
    (root / ".dvc").mkdir()
    (root / "dvc.yaml").touch()
    register(f"sqlite:///{root}/mlflow.db", saved["sentiment"])
    register(f"sqlite:///{root}/other.db", saved["translation"])
    others = {"MLFLOW_REGISTRY_URI": f"sqlite:///{root}/other.db", "MLFLOW_RUN_ID": "0123"}
    others |= {"MLFLOW_EXPERIMENT_ID": "7", "MLFLOW_EXPERIMENT_NAME": "other", "MLFLOW_TRACKING_USERNAME": "x"}
    port = free_port()
    command = [sys.executable, "-m", "transformer", "serve", "-m", f"models:/{NAME}@best", "--port", str(port)]
    environment = clean_environment(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1", **others)
    process = start_server(command, f"http://127.0.0.1:{port}/ping", root, environment, root / "log")
    try:
        assert (root / "log").read_text().startswith(f"serving models:/{NAME}/1;")
        yield f"http://127.0.0.1:{port}/invocations"
    finally:
        stop_server(process)


def ask(address: str, body: str, kind: str) -> tuple[int, Any]:
    request = urllib.request.Request(address, data=body.encode(), headers={"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.loads(response.read())["predictions"]
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def in_json(address: str, texts: list[str]) -> list[dict[str, Any]]:
    records = json.dumps({"dataframe_records": [{"text": text} for text in texts]})
    status, answers = ask(address, records, "application/json")
    assert status == 200, answers
    found: list[dict[str, Any]] = answers
    return found


def test_the_printed_version_answers(address: str) -> None:
    (answer,) = in_json(address, ["good"])
    assert sorted(answer) == ["label", "notes", "probability"], "not the other registry's translation"


def test_a_text_in_csv_is_the_text_in_json(address: str, saved: dict[str, Path]) -> None:
    from transformer.inference.bundle import open_bundle

    csv = "\n".join(["text", *(f'"{text}"' if "," in text else text for text in TEXTS), ""])
    model: Any = open_bundle(saved["sentiment"] / "artifacts" / "bundle", "cpu")
    expected = [answer.label for answer in model.classify(TEXTS)]
    assert ask(address, csv, "text/csv") == (200, in_json(address, TEXTS))
    assert [answer["label"] for answer in in_json(address, TEXTS)] == expected


@pytest.mark.parametrize("body", ["", "text\na, b\n", 'text\n"a\n'])
def test_what_is_not_csv_is_refused(address: str, body: str) -> None:
    status, message = ask(address, body, "text/csv")
    assert status == 400 and message.startswith("the request is not CSV: ") and "\n" not in message


LOADED = """
import sys
import pandas as pd
from mlflow import pyfunc
for folder in sys.argv[1:]:
    print(pyfunc.load_model(folder).predict(pd.DataFrame({"text": ["good"]})).to_dict("records"))
"""


def load(*folders: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", LOADED, *map(str, folders)]
    return subprocess.run(command, cwd=folders[0], env=clean_environment(), capture_output=True, text=True)


def test_a_process_runs_the_code_of_one_version(saved: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(saved["sentiment"], other)
    same = load(saved["sentiment"], saved["translation"])
    assert same.returncode == 0, same.stderr
    code = other / "code" / "transformer" / "families" / "classifier" / "classifier.py"
    code.write_text(code.read_text(encoding="utf-8").replace('"label": [', '"label": ["MARK" + '), encoding="utf-8")
    alone = load(other)
    assert "MARK" in alone.stdout, alone.stderr
    both = load(saved["sentiment"], other)
    assert both.returncode == 1 and "MARK" not in both.stdout and both.stdout.startswith("[{'label'")
    last = both.stderr.splitlines()[-1]
    assert f"{other} has other code than {saved['sentiment']}" in last and last.endswith("in a process of its own")
