"""Commands in a subfolder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import ROOT, git
from tests.workflow.comparing import GOOD, write_result
from transformer.cli import find_workspace, given_path, main


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in (".dvc", "notes/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    return tmp_path


def call(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> None:
    """Run a command in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
    main()


def test_the_nearest_workflow_above_is_the_workspace(project: Path) -> None:
    clone = project / ".dvc" / "tmp" / "exps" / "clone"
    (clone / ".dvc").mkdir(parents=True)
    (clone / "dvc.yaml").touch()
    (clone / "notes").mkdir()
    assert {find_workspace(project / folder) for folder in (".", "notes", "notes/deep")} == {project}
    assert find_workspace(clone / "notes") == clone


def test_paths_mean_the_folder_that_one_stands_in(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert given_path("notes/x") == Path("notes/x")
    with pytest.raises(SystemExit, match=r"notes/params\.yaml is missing"):
        call(monkeypatch, project / "notes", "check", "params.yaml")
    call(monkeypatch, ROOT / "docs", "check", "../params.yaml")
    assert capsys.readouterr().out.endswith("params.yaml: all parameters are valid\n")
    monkeypatch.chdir(project / "notes")
    assert given_path("x") == project / "notes/x"
    assert given_path("/x") == Path("/x")
    assert given_path("-") == Path("-")


def test_a_command_outside_of_a_repository_says_so_if_it_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("summary", "sync", "parameters", "accept"):
        with pytest.raises(SystemExit) as caught:
            call(monkeypatch, tmp_path, command)
        assert str(caught.value).startswith(f"error: {tmp_path} is not in a clone of this project")
    for name, message in (
        ("x" * 300, r"x+/config.json cannot be used \(File name too long\): check its path"),
        (str(tmp_path), r".* is not an exported model \(config\.json is missing\): run `dvc repro`"),
        (__file__, r".* is a file: name the folder of an exported model"),
        ("models:/a@best", r"models:/a@best is in MLflow's registry"),
    ):
        with pytest.raises(SystemExit, match=f"^error: {message}"):
            call(monkeypatch, tmp_path, "translate", "-m", name, "Hallo")
    assert [*tmp_path.iterdir()] == []
    assert find_workspace(tmp_path) == tmp_path and given_path("bundle") == Path("bundle")


def test_a_command_in_another_clone_runs_the_code_of_that_one(project: Path) -> None:
    """As the stages do there, with the environment of the clone that it was installed from."""
    package = project / "transformer"
    package.mkdir()
    for name in ("__init__.py", "cli.py"):
        (package / name).touch()
    (package / "__main__.py").write_text("import sys\nprint(__file__, *sys.argv[1:])\n")
    command = (sys.executable, "-m", "transformer.cli", "check", "a b")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=project / "notes", env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{package / '__main__.py'} check a b\n"


def test_what_dvc_refuses_is_one_line_and_a_password_is_not_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a configuration that a merge has broken: the result is shown all the same."""
    git(project, "init", "-q")
    with pytest.raises(SystemExit, match=r"^error: workspace has no complete result in dvc\.lock: run `dvc repro`"):
        call(monkeypatch, project, "summary")
    write_result(project, rate=1e-3, module="a" * 32, answers=GOOD)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a result")
    (project / ".dvc" / "config").write_text("[core]\n[core]\n")
    shown = ""
    places = {
        "http://user:w@rd@host:5000": "http://***@host:5000 ",
        "sqlite:///a.db": "make ui ",
        "sqlite://": "make ui ",
    }
    for address, place in places.items():
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        call(monkeypatch, project, "summary")
        shown = capsys.readouterr().out
        assert f"\n  {place}" in shown
    (line,) = [line for line in shown.splitlines() if "DVC says" in line]
    assert line.startswith("sentiment: what has changed since cannot be told: DVC says: ") and "config" in line
