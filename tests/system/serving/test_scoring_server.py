"""MLflow's own server, started by `transformer serve`, with a small model and what it is converted to."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kit import ROOT, clean_environment, free_port, start_server, stop_server
from tests.training.small import paths_in, run_stage, smoke
from transformer.core.files import write_table
from transformer.core.observer import Observer
from transformer.inference.bundle import engines_of, open_bundle
from transformer.workflow.mlflow import save_model

TASK = "translation"
TEXTS = [f"ein {colour} {animal} schläft ." for colour in ("roter", "grauer") for animal in ("Hund", "Vogel", "Fuchs")]
TRANSFORMER = str(Path(sys.executable).with_name("transformer"))


def environment() -> dict[str, str]:
    return clean_environment(PYTHONPATH=str(ROOT), PATH="/usr/bin:/bin", OMP_NUM_THREADS="1")


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
    save_model(root / "model", bundle, TASK, example=TEXTS[0])
    shutil.copytree(paths.converted, root / "model" / "artifacts" / "converted")
    return root


class Server:
    """A running server, and how its user asks it."""

    def __init__(self, root: Path) -> None:
        self.port = free_port()
        self.log = root / f"log{self.port}"
        command = [TRANSFORMER, "serve", "--model", "model", "--port", str(self.port)]
        self.process = start_server(command, f"http://127.0.0.1:{self.port}/ping", root, environment(), self.log)

    def post(self, body: bytes, kind: str = "application/json") -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/invocations", data=body, headers={"Content-Type": kind}
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            content = error.read()
            return error.code, json.loads(content) if content[:1] == b"{" else content.decode()

    def ask(self, texts: list[Any], **params: Any) -> tuple[int, Any]:
        split = {"columns": ["text"], "data": [[text] for text in texts]}
        return self.post(json.dumps({"dataframe_split": split, "params": params}).encode())

    def answers(self, texts: list[str], **params: Any) -> list[str]:
        status, content = self.ask(texts, **params)
        assert status == 200, content
        return [row[TASK] for row in content["predictions"]]


@pytest.fixture(scope="module")
def server(workspace: Path) -> Iterator[Server]:
    server = Server(workspace)
    yield server
    stop_server(server.process)


@pytest.fixture(scope="module")
def expected(workspace: Path) -> list[str]:
    """What the bundle itself answers."""
    answers = [*open_bundle(workspace / "models" / TASK / "bundle", "cpu").table(TEXTS)[TASK]]
    assert len(set(answers)) > 1, "they would hide mixed up answers"
    return [str(answer) for answer in answers]


def without_notes(content: Any) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name != "notes"} for row in content["predictions"]]


@pytest.fixture
def healthy(server: Server, expected: list[str]) -> Iterator[None]:
    """Whatever a test sends, the next good request is answered."""
    yield
    assert server.answers(TEXTS) == expected


def test_the_printed_command_is_answered(server: Server, expected: list[str]) -> None:
    said = server.log.read_text()
    assert said.startswith("serving ") and said.splitlines()[0].endswith(
        "once the log says that Uvicorn runs, ask it with"
    )
    (line,) = re.findall(r"^    (curl .*)$", said, re.MULTILINE)
    done = subprocess.run(["curl", "-s", *shlex.split(line)[1:]], capture_output=True, check=True)
    assert without_notes(json.loads(done.stdout)) == [{TASK: expected[0]}]


def test_both_forms_of_json_are_answered_alike(server: Server, expected: list[str]) -> None:
    assert server.answers(TEXTS) == expected
    records = json.dumps({"dataframe_records": [{"text": text} for text in TEXTS]}).encode()
    status, content = server.post(records)
    assert status == 200 and without_notes(content) == [{TASK: answer} for answer in expected]


def test_an_answer_says_what_was_not_read(server: Server) -> None:
    status, content = server.ask(["", "ein 犬"])
    assert status == 200
    empty, unknown = (row["notes"] for row in content["predictions"])
    assert empty == "" and unknown.startswith("words that the vocabulary lacks: 犬")


@pytest.mark.parametrize("engine", ["best", "torch", "onnx"])
def test_every_engine_with_our_search_gives_the_answers_of_the_bundle(
    engine: str, server: Server, expected: list[str]
) -> None:
    assert server.answers(TEXTS, engine=engine) == expected


def test_a_request_can_ask_for_a_beam_and_for_several_translations(server: Server, workspace: Path) -> None:
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
    "body",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"\xff\xfe",
        b'{"instances_": [1]}',
        b'{"dataframe_split": {"columns": ["text"], "data": 3}}',
        b'{"dataframe_split": {"columns": ["words"], "data": [["ein"]]}}',
        b'{"dataframe_records": [{"text": {"a": 1}}]}',
        b'{"dataframe_records": [{"text": "ein"}], "params": {"beam_size": "many"}}',
    ],
)
def test_what_mlflow_rejects_is_the_request_s_fault(server: Server, body: bytes) -> None:
    status, content = server.post(body)
    assert status == 400 and content["message"]


@pytest.mark.usefixtures("healthy")
def test_another_content_type_is_refused(server: Server) -> None:
    assert server.post(b"text\nein Hund", "text/plain")[0] == 415


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("texts", "params", "words"),
    [
        (["ein"], {"beam_size": 0}, "`decoding.beam_size`: Input should be greater than or equal to 1, not 0"),
        (["ein"], {"beam_size": 101}, "`beam_size` is 101, and a request can have at most 100"),
        (["ein"], {"n_best": 101}, "`n_best` is 101, and a request can have at most 100"),
        (["ein"], {"n_best": 3, "beam_size": None}, "greedy finds one answer, so n_best must be 1, not 3"),
        (["ein"], {"beam_size": 2, "n_best": 3}, "n_best (3) must not be more than beam_size (2)"),
        (["ein"], {"engine": "magic"}, "there is no engine `magic`"),
        (["ein"], {"engine": "onnx-int8"}, "is not converted for engine `onnx-int8`"),
        (["ein", None], {}, "column `text`: "),
    ],
)
def test_our_own_errors_are_one_line(server: Server, texts: list[Any], params: dict[str, Any], words: str) -> None:
    status, content = server.ask(texts, **params)
    assert status == 400 and words in content["message"], content
    assert "\n" not in content["message"]


@pytest.mark.usefixtures("healthy")
def test_an_empty_text_and_no_text_have_empty_answers(server: Server) -> None:
    assert server.answers(["", " "]) == ["", ""]
    assert server.ask([]) == (200, {"predictions": []})


@pytest.mark.usefixtures("healthy")
def test_a_megabyte_of_text_is_answered(server: Server) -> None:
    (answer,) = server.answers(["Hund " * 200_000])
    assert isinstance(answer, str)


@pytest.mark.parametrize("engine", ["torch", "onnx", "ctranslate2"])
def test_parallel_requests_get_the_serial_answers(server: Server, engine: str) -> None:
    requests = [[TEXTS[number % len(TEXTS)], f"{'sehr ' * number}gut ."] for number in range(20)]
    serial = [server.answers(request, engine=engine, beam_size=1) for request in requests]
    with ThreadPoolExecutor(20) as pool:
        parallel = [*pool.map(lambda request: server.answers(request, engine=engine, beam_size=1), requests)]
    assert parallel == serial


def refused(workspace: Path, *options: str) -> str:
    """The one line of a server that does not start."""
    done = subprocess.run(
        [TRANSFORMER, "serve", *options], cwd=workspace, env=environment(), text=True, capture_output=True
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_taken_port_and_a_missing_model_cost_one_line(workspace: Path, server: Server) -> None:
    assert f"port {server.port} is taken" in refused(workspace, "--model", "model", "--port", str(server.port))
    assert "no complete result" in refused(workspace, "--port", str(free_port()))


@pytest.mark.parametrize("uri", ["models", "models:/none@best", "models:/none/7", "models:/m-none"])
def test_other_missing_models_cost_one_line(workspace: Path, uri: str) -> None:
    said = "MLmodel is missing" if uri == "models" else uri
    assert said in refused(workspace, "--model", uri, "--port", str(free_port()))


def test_sigterm_under_load_loses_no_accepted_request(workspace: Path, expected: list[str]) -> None:
    """PyTorch answers one request at a time, so most are waiting when the signal comes."""
    server = Server(workspace)
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
        with pytest.raises(urllib.error.URLError, match="refused"):
            server.answers(TEXTS)
    finally:
        stop_server(server.process)
