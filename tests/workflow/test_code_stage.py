"""The stage `code` and `transformer check`, in this process, on a copy of the project's files."""

import subprocess
from pathlib import Path

import pytest

import stages.code
from tests.kit import ROOT, clean_environment
from transformer.cli import main
from transformer.commands.profiles import profile_params
from transformer.core.code import code_path
from transformer.core.errors import UserError


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DVC repository with this project's dvc.yaml and parameters."""
    monkeypatch.chdir(tmp_path)
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
        subprocess.run(command, cwd=tmp_path, env=clean_environment(), check=True)
    (tmp_path / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    (tmp_path / "params.yaml").write_text(profile_params(ROOT, "smoke"), encoding="utf-8")
    for folder in ("none", "translation", "sentiment", "language", "vocabulary"):
        (tmp_path / "data/local" / folder).mkdir(parents=True)
    return tmp_path


def test_it_writes_what_has_changed_and_says_so(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["stages.code", "sentiment"])
    stages.code.main()
    assert capsys.readouterr().err.startswith("code@sentiment: changed for download, tokenize, ")
    path = code_path("train", "sentiment")
    assert (workspace / path).read_bytes() == (ROOT / path).read_bytes(), "the committed one is up to date"
    stages.code.main()
    assert capsys.readouterr().err == ""
    (workspace / path).write_text("{}")
    stages.code.main()
    assert capsys.readouterr().err == "code@sentiment: changed for train\n"
    monkeypatch.setattr("sys.argv", ["stages.code"])
    with pytest.raises(SystemExit, match=r"usage: python -m stages.code TASK"):
        stages.code.main()


def test_check_names_the_stages_that_would_run(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["transformer", "check"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert "stages are not up to date: run `dvc repro`" in str(ended.value.code)
    assert "params.yaml: all parameters are valid" in said.out and "download@sentiment: " in said.out
    monkeypatch.setattr("sys.argv", ["transformer", "check", "params.yaml"])
    main()
    assert capsys.readouterr().out.endswith("all parameters are valid\n")


def test_code_that_is_no_python_is_one_line(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: object) -> list[str]:
        raise UserError("transformer/nn/layers.py is not valid Python")

    monkeypatch.setattr(stages.code, "write_code", broken)
    monkeypatch.setattr("sys.argv", ["stages.code", "sentiment"])
    with pytest.raises(SystemExit, match=r"error: code@sentiment: transformer/nn/layers.py is not valid Python"):
        stages.code.main()
