"""What a stage compares at its start and end, in this process: parameters, code and inputs."""

import json
import shutil
from pathlib import Path

import pytest

from tests.kit import ROOT, set_leaves
from transformer.core.code import code_path
from transformer.core.errors import UserError
from transformer.core.params import read_params
from transformer.core.task import open_task
from transformer.core.unchanged import InputSnapshot

STAGE = "download"


def start() -> InputSnapshot:
    task, path = open_task("sentiment"), Path("params.yaml")
    return InputSnapshot(path, read_params(path), STAGE, task, task.family.stage(STAGE).Params)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InputSnapshot:
    """A stage that has begun in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, name)
    (tmp_path / "samples/sentiment").mkdir(parents=True)
    return start()


def test_a_parameter_or_an_input_that_changes_meanwhile_is_named(started: InputSnapshot) -> None:
    started.require_unchanged("")
    Path("samples/sentiment/more.jsonl").touch()
    with pytest.raises(UserError, match=r"samples/sentiment/more.jsonl changed while the stage ran, .* again; kept"):
        started.require_unchanged("; kept")
    Path("samples/sentiment/more.jsonl").unlink()
    set_leaves(Path("params.yaml"), {"sentiment.download.seed": 11})
    with pytest.raises(UserError, match=r"^sentiment.download.seed \(\d+ -> 11\) changed while the stage ran"):
        started.require_unchanged("")


def test_a_process_of_other_code_than_its_file_says_is_refused(started: InputSnapshot) -> None:
    path = Path(code_path(STAGE, "sentiment"))
    path.parent.mkdir(parents=True)
    shutil.copy(ROOT / path, path)
    start()
    content = json.loads(path.read_bytes())
    content["modules"]["transformer/core/files.py"] = "0" * 16
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"core/files.py changed since reports/sentiment/code/download.json"):
        start()


def test_a_module_that_the_fingerprint_does_not_list_is_named(
    started: InputSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer.core.unchanged.unlisted", lambda code: ["transformer/nn/more.py"])
    with pytest.raises(UserError, match=r"^transformer/nn/more.py was imported, but DVC would see no change of it"):
        started.record()
    monkeypatch.setattr("transformer.core.unchanged.unlisted", lambda code: [])
    started.record()
    record = json.loads(Path("reports/sentiment/ran/download.json").read_bytes())
    assert record["parameters"] == started.parameters and record["other_versions"] == started.other_versions
