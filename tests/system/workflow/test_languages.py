"""Other scripts, orders and label sets, with the commands of docs/own-data.md: from files to a served answer."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ROOT, Clone, make_clone
from tests.data.languages import LANGUAGES, pairs
from tests.kit import free_port
from transformer.commands.profiles import default_params
from transformer.core.files import read_json

STARS = {
    1: "awful broken waste",
    2: "poor weak slow",
    3: "plain average fair",
    4: "good solid nice",
    5: "perfect lovely",
}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A fresh clone with the default parameters."""
    clone = make_clone(tmp_path / "clone")
    clone.params.write_text(default_params(ROOT), encoding="utf-8")
    clone.commit("default")
    return clone


@contextmanager
def server(model: Path) -> Iterator[str]:
    """MLflow's scoring server for a saved model; the address for questions."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(model), "--env-manager", "local"]
    process = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)])
    try:
        for _ in range(240):
            try:
                urlopen(f"http://127.0.0.1:{port}/ping", timeout=5)
                break
            except (URLError, OSError):
                assert process.poll() is None
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/invocations"
    finally:
        process.terminate()
        process.wait(timeout=60)


def ask(address: str, text: str) -> dict[str, Any]:
    """The server's answer for one text."""
    body = json.dumps({"dataframe_split": {"columns": ["text"], "data": [[text]]}}).encode()
    request = Request(address, data=body, headers={"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        (row,) = json.loads(answer.read())["predictions"]
    assert isinstance(row, dict)
    return row


def served_answer(clone: Clone, task: str, text: str) -> dict[str, Any]:
    """The answer of a server for the workspace's bundle."""
    from transformer.workflow.mlflow import save_model

    folder = clone.root / "served"
    save_model(folder, clone.root / "models" / task / "bundle", task)
    with server(folder) as address:
        return ask(address, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_goes_from_files_to_a_served_answer(language: str, clone: Clone) -> None:
    folder = clone.root / "data" / "local" / f"{language}-en"
    folder.mkdir()
    own, english = zip(*pairs(language), strict=True)
    (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
    (folder / "train.en").write_text("".join(f"{line}\n" for line in english), encoding="utf-8")
    said = clone.run("transformer", "new-corpus", str(folder)).stdout
    assert f"sentence pairs, {language} to en" in said
    clone.run("transformer", "profile", f"{language}-en")
    clone.repro("report@translation")
    scores = read_json(clone.root / "reports" / "translation" / "evaluation.json")["test"]
    assert scores["chrf"] > 90  # every phrase of the held-out sentences is in training
    answer = served_answer(clone, "translation", own[0])
    assert answer["translation"].removesuffix(".").strip() == english[0].removesuffix(".")


def test_five_star_ratings_go_from_files_to_a_served_answer(clone: Clone) -> None:
    folder = clone.root / "data" / "local" / "stars"
    folder.mkdir()
    rows = [
        {"review": f"{word} {thing}, it came on day {day}", "stars": stars}
        for day in range(20)
        for thing in ("phone", "book", "chair", "lamp")
        for stars, found in STARS.items()
        for word in found.split()
    ]
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    clone.run("transformer", "new-corpus", str(folder))
    clone.run("transformer", "profile", "stars")
    clone.repro("report@sentiment")
    assert read_json(clone.root / "reports" / "sentiment" / "evaluation.json")["test"]["macro_f1"] > 0.9
    assert served_answer(clone, "sentiment", "perfect lamp, it came on day 3")["label"] == "5"
