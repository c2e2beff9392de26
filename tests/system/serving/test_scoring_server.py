"""MLflow's own server, started by `transformer serve`, with a small model and what it is converted to."""

import io
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import psutil
import pytest
from mlflow import MlflowClient

from tests.kit import clean_environment, free_port
from tests.system.serving.server import COMMAND, Server, environment
from tests.training.small import paths_in, run_stage, smoke
from transformer.core.files import write_table
from transformer.core.observer import Observer
from transformer.inference.bundle import engines_of, open_bundle
from transformer.workflow.mlflow import save_model

TASK, NAME = "translation", "a-model"
TEXTS = [f"ein {colour} {animal} schläft ." for colour in ("roter", "grauer") for animal in ("Hund", "Vogel", "Fuchs")]


@pytest.fixture(scope="module")
def workspace(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a bundle and its conversions, saved as an MLflow model in `model`."""
    root = tmp_path_factory.mktemp("workspace")
    (root / ".dvc").mkdir()
    for name in ("dvc.yaml", "params.yaml"):
        (root / name).touch()
    bundle, predictions = root / "models" / TASK / "bundle", root / "reports" / TASK / "predictions.tsv"
    shutil.copytree(bundles[TASK], bundle)
    predictions.parent.mkdir(parents=True)
    answers = open_bundle(bundle, "cpu").table(TEXTS)[TASK]
    rows = [("validation", text, answer, answer) for text, answer in zip(TEXTS, answers, strict=True)]
    write_table(predictions, ["split", "source", "hypothesis", "reference"], rows)
    paths = paths_in(root, TASK)
    content = smoke(TASK, {"convert": {"formats": ["onnx", "ctranslate2"], "int8": False, "verify_rows": 2}})
    run_stage(content, TASK, "convert", paths, Observer())
    assert engines_of(bundle) == ["ctranslate2", "onnx"]
    save_model(root / "model", bundle, TASK, examples=TEXTS[:2])
    shutil.copytree(paths.converted, root / "model" / "artifacts" / "converted")
    save_model(root / "other", bundles["sentiment"], "sentiment")
    for store, folder in (("mlflow", "model"), ("other", "other")):
        client = MlflowClient(f"sqlite:///{root}/{store}.db", f"sqlite:///{root}/{store}.db")
        client.create_registered_model(NAME)
        client.create_model_version(NAME, (root / folder).as_uri())
        client.set_registered_model_alias(NAME, "best", "1")
    return root


class Translator(Server):
    """A server of translations."""

    def answers(self, texts: list[str], **params: Any) -> list[str]:
        status, content = self.ask(texts, **params)
        assert status == 200, content
        return [row[TASK] for row in content["predictions"]]


@pytest.fixture(scope="module")
def server(workspace: Path) -> Iterator[Translator]:
    """The project's version 1, in a shell with MLflow's variables of another project."""
    others = {"MLFLOW_REGISTRY_URI": f"sqlite:///{workspace}/other.db", "MLFLOW_RUN_ID": "0123"}
    others |= {"MLFLOW_EXPERIMENT_ID": "7", "MLFLOW_EXPERIMENT_NAME": "other", "MLFLOW_TRACKING_USERNAME": "x"}
    server = Translator(workspace, f"models:/{NAME}@best", **others)
    assert server.log.read_text().startswith(f"serving models:/{NAME}/1;")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def expected(workspace: Path) -> list[str]:
    """What the bundle itself answers."""
    answers = [*open_bundle(workspace / "models" / TASK / "bundle", "cpu").table(TEXTS)[TASK]]
    assert len(set(answers)) > 1, "they would hide mixed up answers"
    return [str(answer) for answer in answers]


def without_notes(content: Any) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name != "notes"} for row in content["predictions"]]


@pytest.fixture
def healthy(server: Translator, expected: list[str]) -> Iterator[None]:
    """Whatever a test sends, the next good request is answered."""
    yield
    assert server.answers(TEXTS) == expected


def test_the_printed_command_is_answered(server: Translator, expected: list[str]) -> None:
    said = server.log.read_text()
    assert re.match(rf"serving \S+; once the log says that Uvicorn runs, open\n\n    {server.address}/\n\nor ask", said)
    (line,) = re.findall(r"^    (curl .*)$", said, re.MULTILINE)
    done = subprocess.run(["curl", "-s", *shlex.split(line)[1:]], capture_output=True, check=True)
    assert without_notes(json.loads(done.stdout)) == [{TASK: expected[0]}]


def test_both_forms_of_json_are_answered_alike(server: Translator, expected: list[str]) -> None:
    for engine in ("best", "torch", "onnx"):
        assert server.answers(TEXTS, engine=engine) == expected
    records = json.dumps({"dataframe_records": [{"text": text} for text in TEXTS]}).encode()
    status, content = server.post(records)
    assert status == 200 and without_notes(content) == [{TASK: answer} for answer in expected]


def test_texts_in_csv_are_answered_as_in_json(server: Translator, workspace: Path) -> None:
    texts = ["NA", "null", "nan", "None", "007", "1e5", "true", "2024-01-01", "a, b", "", "gut"]
    csv = "\n".join(["text", *(f'"{text}"' if "," in text else text for text in texts), ""])
    expected: Any = open_bundle(workspace / "models" / TASK / "bundle", "cpu").table(texts)
    for status, content in (server.post(csv.encode(), "text/csv"), server.ask(texts)):
        assert status == 200
        assert {name: [row[name] for row in content["predictions"]] for name in expected} == expected
    status, content = server.post(b'text\n"a\n', "text/csv")
    assert status == 400 and content["message"].startswith("the request is not CSV: ")


def test_an_answer_says_what_was_not_read_and_nothing_has_an_empty_answer(server: Translator) -> None:
    status, content = server.ask(["", "ein 犬"])
    assert status == 200
    empty, unknown = content["predictions"]
    assert empty == {TASK: "", "notes": ""} and unknown["notes"].startswith("words that the vocabulary lacks: 犬")
    assert server.ask([]) == (200, {"predictions": []})


def test_a_request_can_ask_for_a_beam_and_for_several_translations(server: Translator, workspace: Path) -> None:
    model: Any = open_bundle(workspace / "models" / TASK / "bundle", "cpu")
    decoding = model.decoding.model_copy(update={"method": "beam", "beam_size": 3, "n_best": 2})
    found = model.table(TEXTS[:3], decoding)
    status, content = server.ask(TEXTS[:3], beam_size=3, n_best=2)
    assert status == 200
    assert {name: [row[name] for row in content["predictions"]] for name in found} == found
    greedy = model.decoding.model_copy(update={"method": "greedy", "beam_size": 1})
    assert server.answers(TEXTS, beam_size=1, engine="ctranslate2") == model.table(TEXTS, greedy)[TASK]


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("texts", "params", "words"),
    [
        (["ein"], {"beam_size": 0}, "`decoding.beam_size`: Input should be greater than or equal to 1, not 0"),
        (["ein"], {"beam_size": 101}, "`beam_size` is 101, and a request can have at most 100"),
        (["ein"], {"n_best": 3, "beam_size": None}, "greedy finds one answer, so n_best must be 1, not 3"),
        (["ein"], {"engine": "magic"}, "there is no engine `magic`"),
        (["ein"], {"engine": "onnx-int8"}, "is not converted for engine `onnx-int8`"),
        (["ein", None], {}, "column `text`: "),
    ],
)
def test_our_own_errors_are_one_line(server: Translator, texts: list[Any], params: dict[str, Any], words: str) -> None:
    status, content = server.ask(texts, **params)
    assert status == 400 and words in content["message"], content
    assert "\n" not in content["message"]
    assert server.post(b"{")[0] == 400 and server.post(b"text\nein Hund", "text/plain")[0] == 415


@pytest.mark.parametrize("engine", ["torch", "onnx", "ctranslate2"])
def test_parallel_requests_get_the_serial_answers(server: Translator, engine: str) -> None:
    requests = [[TEXTS[number % len(TEXTS)], f"{'sehr ' * number}gut ."] for number in range(20)]
    serial = [server.answers(request, engine=engine, beam_size=1) for request in requests]
    with ThreadPoolExecutor(20) as pool:
        parallel = [*pool.map(lambda request: server.answers(request, engine=engine, beam_size=1), requests)]
    assert parallel == serial


def refused(workspace: Path, *options: str) -> str:
    """The one line of a server that does not start."""
    done = subprocess.run([*COMMAND, *options], cwd=workspace, env=environment(), text=True, capture_output=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_taken_port_and_a_missing_model_cost_one_line(workspace: Path, server: Translator) -> None:
    assert f"port {server.port} is taken" in refused(workspace, "--model", "model", "--port", str(server.port))
    assert "no complete result" in refused(workspace, "--port", str(free_port()))
    for uri, said in (("models", "MLmodel is missing"), ("models:/none@best", "models:/none@best")):
        assert said in refused(workspace, "--model", uri, "--port", str(free_port()))


def test_sigterm_under_load_loses_no_accepted_request(workspace: Path, expected: list[str]) -> None:
    """PyTorch answers one request at a time, so most are waiting when the signal comes."""
    server = Translator(workspace)
    try:
        assert server.answers(TEXTS, engine="torch") == expected

        def long_request() -> list[str]:
            return server.answers(TEXTS * 200, engine="torch", beam_size=8)

        start = time.monotonic()
        serial = long_request()
        seconds = time.monotonic() - start
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(long_request) for _ in range(8)]
            time.sleep(2 * seconds)  # all are accepted
            waiting = sum(not request.done() for request in asked)
            server.process.send_signal(signal.SIGTERM)
            assert [request.result() for request in asked] == [serial] * len(asked)
        assert waiting > 1, "no load"
        with pytest.raises(httpx.ConnectError):
            server.answers(TEXTS)
    finally:
        server.stop()


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


def test_a_process_runs_the_code_of_one_version(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(workspace / "other", other)
    same = load(workspace / "other", workspace / "model")
    assert same.returncode == 0, same.stderr
    code = other / "code" / "transformer" / "families" / "classifier" / "classifier.py"
    code.write_text(code.read_text(encoding="utf-8").replace('"label": [', '"label": ["MARK" + '), encoding="utf-8")
    alone = load(other)
    assert "MARK" in alone.stdout, alone.stderr
    both = load(workspace / "other", other)
    assert both.returncode == 1 and "MARK" not in both.stdout and both.stdout.startswith("[{'label'")
    last = both.stderr.splitlines()[-1]
    assert f"{other} has other code than {workspace / 'other'}" in last and last.endswith("in a process of its own")


def test_requests_that_would_take_the_machine_are_refused_within_a_second(server: Translator) -> None:
    """Ten million texts in 30 KB of Parquet, as many lines in CSV, and a thousand texts with a beam of 100."""
    stream = io.BytesIO()
    pd.DataFrame({"text": ["ein Hund"] * 10_000_000}).to_parquet(stream)
    requests: list[tuple[bytes, str]] = [(stream.getvalue(), "application/vnd.apache.parquet")]
    requests += [(b"text\n" + b"\n" * 2_001, "text/csv"), (b"text\n" + b"\n" * (5 << 20), "text/csv")]
    split = {"columns": ["text"], "data": [["ein Hund"]] * 1000}
    requests += [(json.dumps({"dataframe_split": split, "params": {"beam_size": 100}}).encode(), "application/json")]
    for body, kind in requests:
        started = time.monotonic()
        status, content = server.post(body, kind)
        assert 400 <= status < 500 and time.monotonic() - started < 1, (status, kind)
        assert len(json.dumps(content)) < 300, "the request is not echoed"


def test_slow_connections_are_closed(server: Translator) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
        slow.sendall(b"POST /invocations HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""


def test_other_machines_need_the_token(workspace: Path) -> None:
    served = Translator(workspace, "model", "--host", "0.0.0.0")
    try:
        (token,) = re.findall(r"Bearer (\S+)'", served.log.read_text())
        assert served.ask(["ein Hund"])[0] == 401
        body = json.dumps({"dataframe_split": {"columns": ["text"], "data": [["ein Hund"]]}})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        assert httpx.post(f"{served.address}/invocations", content=body, headers=headers, timeout=60).status_code == 200
    finally:
        served.stop()


def test_five_thousand_requests_leave_the_memory_flat(server: Translator) -> None:
    process = psutil.Process(server.process.pid)
    with httpx.Client(base_url=server.address) as client, ThreadPoolExecutor(4) as pool:

        def ask(number: int) -> int:
            split = {"columns": ["text"], "data": [[TEXTS[number % len(TEXTS)]]] * (1 + number % 5)}
            return client.post("/invocations", json={"dataframe_split": split}, timeout=60).status_code

        assert {*pool.map(ask, range(1000))} == {200}
        before = process.memory_info().rss
        assert {*pool.map(ask, range(4000))} == {200}
    assert process.memory_info().rss - before < 30e6
