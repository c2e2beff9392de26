"""A commit's results, computed again in a clone: the same, others, or not computed."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from ruamel.yaml import YAML

from tests.kit import clean_environment, git
from tests.system.tracking.conftest import run_in
from transformer.core.errors import UserError
from transformer.workflow.reproduction import verify

DVC_YAML = """\
stages:
  train:
    foreach: [translation, sentiment]
    do:
      cmd: cat given code.py > models-${item}
      deps: [given, code.py]
      params: [hardware]
      outs: ["models-${item}"]
  evaluate:
    foreach: [translation, sentiment]
    do:
      cmd: mkdir -p plots-${item} && cp models-${item} plots-${item}/curve && cp models-${item} scores-${item}
      deps: ["models-${item}"]
      metrics: ["scores-${item}": {cache: false}]
      plots: ["plots-${item}": {cache: false}]
  report:
    foreach: [translation, sentiment]
    do:
      cmd: cat scores-${item} > page
      deps: ["scores-${item}", "plots-${item}"]
"""
PARAMS = "hardware: {device: cpu, precision: fp32, threads: 2, portable: true}\nruntime: {tracking: true}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in a subfolder of a repository, whose stages copy files; run and committed."""
    root = tmp_path_factory.mktemp("made") / "project"
    root.mkdir()
    for name, text in {"dvc.yaml": DVC_YAML, "params.yaml": PARAMS, "given": "rows\n", "code.py": "pass\n"}.items():
        (root / name).write_text(text)
    run_in(root.parent, "git", "init", "-q", "-b", "main")
    run_in(root, "dvc", "init", "-q", "--subdir")
    (root / ".gitignore").write_text("models-*\npage\n")
    run_in(root, "dvc", "repro", "-q")
    commit(root)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.parent, tmp_path / "copy", symlinks=True)) / "project"


def commit(root: Path) -> None:
    run_in(root, "git", "add", "-A")
    run_in(root, "git", "commit", "-qm", "result")


def verified(root: Path, task: str | None = None) -> list[str]:
    """The lines, the error last."""
    lines: list[str] = []
    try:
        verify(root, "HEAD", task, lines.append)
    except UserError as error:
        lines.append(f"error: {error}")
    assert not [*(root / ".dvc/tmp").glob("verify-*")]
    return lines


def test_every_stage_runs_in_a_clone_and_the_same_bytes_pass(project: Path) -> None:
    """Whatever the workspace, its cache and its tracking store hold."""
    (project / "given").write_text("edited\n")
    (project / "dvc.lock").unlink()
    before = git(project, "status", "--porcelain")
    assert verified(project) == ["6 stages computed: every output is that of HEAD"]
    assert git(project, "status", "--porcelain") == before


def other_lock(root: Path) -> None:
    yaml = YAML()
    content = yaml.load(root / "dvc.lock")
    content["stages"]["train@sentiment"]["outs"][0]["md5"] = "0" * 32
    yaml.dump(content, root / "dvc.lock")


def other_metric(root: Path) -> None:
    (root / "scores-sentiment").write_text("0.99\n")


def other_file_of_a_folder(root: Path) -> None:
    (root / "plots-sentiment/curve").write_text("0.99\n")


def without_reports(root: Path) -> None:
    run_in(root, "git", "rm", "-q", "scores-sentiment")


def code_that_did_not_run(root: Path) -> None:
    (root / "code.py").write_text("1 / 0\n")


def parameters_that_did_not_run(root: Path) -> None:
    (root / "params.yaml").write_text(PARAMS.replace("threads: 2", "threads: 1"))


def frozen(root: Path) -> None:
    """DVC takes the outputs of such a stage as they are."""
    text = DVC_YAML.replace("      cmd: mkdir", "      frozen: true\n      cmd: mkdir")
    (root / "dvc.yaml").write_text(text)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (other_lock, ["train@sentiment: wrote other models-sentiment"]),
        (other_metric, ["evaluate@sentiment: wrote other scores-sentiment"]),
        (other_file_of_a_folder, ["evaluate@sentiment: wrote other plots-sentiment"]),
        (without_reports, ["evaluate@sentiment: wrote other scores-sentiment"]),
        (
            code_that_did_not_run,
            [
                "train@sentiment: wrote other models-sentiment; read other code.py",
                "evaluate@sentiment: wrote other plots-sentiment, scores-sentiment; read other models-sentiment",
                "report@sentiment: read other plots-sentiment, scores-sentiment",
            ],
        ),
        (parameters_that_did_not_run, ["train@sentiment: read other hardware.threads"]),
        (frozen, [f"{stage}@sentiment: not computed" for stage in ("train", "evaluate", "report")]),
    ],
)
def test_what_differs_is_named_by_stage(change: Callable[[Path], None], expected: list[str], project: Path) -> None:
    change(project)
    commit(project)
    *lines, last = verified(project, "sentiment")
    assert lines == expected
    failed = "`dvc repro` failed: " if change is frozen else ""
    assert last == f"error: {failed}{len(expected)} of 3 stages are not as at HEAD"


@pytest.mark.parametrize(
    ("hardware", "cpu", "why"),
    [
        ("device: cpu, precision: bf16", {"avx2": True}, "the bytes of bf16 on cpu belong to a kind of machine"),
        ("device: cpu, precision: fp32, portable: false", {"avx2": True}, "hardware.portable is false, so the bytes"),
        (
            "device: cpu, precision: fp32, portable: true",
            {"avx2": False},
            "only x86-64 processors with AVX2 compute the same bytes",
        ),
    ],
)
def test_machines_that_cannot_agree_are_told_what_can_be_compared(
    hardware: str, cpu: dict[str, bool], why: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: cpu)
    (project / "params.yaml").write_text(f"hardware: {{{hardware}, threads: 1}}\nruntime: {{tracking: true}}\n")
    commit(project)
    note, *_, last = verified(project, "sentiment")
    assert note.startswith(f"note: {why}")
    assert "`transformer compare HEAD` says whether scores differ by more than chance" in note
    assert last.endswith(note.removeprefix("note: "))


def test_what_a_clone_lacks_is_one_line(project: Path) -> None:
    run_in(project, "git", "rm", "-q", "--cached", "given")
    run_in(project, "git", "commit", "-qm", "a corpus that git does not have")
    (line,) = verified(project)
    assert line.startswith("error: a clone lacks given: name it in params.yaml by its absolute path, or")


def test_stopped_it_leaves_nothing(project: Path) -> None:
    (project / "dvc.yaml").write_text(DVC_YAML.replace("cat given", "touch begun && sleep 77 && cat given"))
    commit(project)
    own = clean_environment()
    command = (sys.executable, "-m", "transformer.cli", "verify")
    process = subprocess.Popen(
        command,
        cwd=project,
        env=own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    due = time.monotonic() + 60
    while not (begun := [*(project / ".dvc/tmp").glob("verify-*/project/begun")]) and process.poll() is None:
        assert time.monotonic() < due
        time.sleep(0.1)
    assert begun
    process.terminate()
    assert process.wait(20) == 130
    assert not [*(project / ".dvc/tmp").glob("verify-*")]
