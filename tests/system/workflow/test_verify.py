"""A commit's results, computed again in a clone: the same, others, or not computed."""

import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL

import pytest
import torch

from tests.kit import clean_environment, git, until
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


OTHER_MODEL = f"/^  train@sentiment:/,/^  [^ ]/{{/path: models/,/ md5:/s/ md5: .*/ md5: {'f' * 32}/}}"
SCORES = ["evaluate@sentiment: wrote other scores-sentiment"]
OTHER_CODE = [
    "train@sentiment: wrote other models-sentiment; read other code.py",
    "evaluate@sentiment: wrote other plots-sentiment, scores-sentiment; read other models-sentiment",
    "report@sentiment: read other plots-sentiment, scores-sentiment",
]
FROZEN = "s/      cmd: mkdir/      frozen: true\\n&/"  # DVC takes the outputs of such a stage as they are


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (f"sed -i '{OTHER_MODEL}' dvc.lock", ["train@sentiment: wrote other models-sentiment"]),
        ("echo 0.99 > scores-sentiment", SCORES),
        ("echo 0.99 > plots-sentiment/curve", ["evaluate@sentiment: wrote other plots-sentiment"]),
        ("rm scores-sentiment", SCORES),
        ("echo '1 / 0' > code.py", OTHER_CODE),
        ("sed -i 's/threads: 2/threads: 1/' params.yaml", ["train@sentiment: read other hardware.threads"]),
        (
            f"sed -i '{FROZEN}' dvc.yaml",
            [f"{s}@sentiment: not computed" for s in ("train", "evaluate", "report")],
        ),
    ],
)
def test_what_differs_is_named_by_stage(change: str, expected: list[str], project: Path) -> None:
    run_in(project, "sh", "-c", change)
    commit(project)
    *lines, last = verified(project, "sentiment")
    assert lines == expected
    failed = "`dvc repro` failed: " if "frozen" in change else ""
    assert last == f"error: {failed}{len(expected)} of 3 stages are not as at HEAD"


@pytest.mark.parametrize(
    ("hardware", "avx2", "why"),
    [
        ("precision: bf16", True, "the bytes of bf16 on cpu belong to a kind of machine"),
        ("precision: fp32, portable: false", True, "hardware.portable is false, so the bytes"),
        ("precision: fp32, portable: true", False, "only x86-64 processors with AVX2 compute the same bytes"),
    ],
)
def test_machines_that_cannot_agree_are_told_what_can_be_compared(
    hardware: str, avx2: bool, why: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": avx2})
    own = f"hardware: {{device: cpu, {hardware}, threads: 1}}\nruntime: {{tracking: true}}\n"
    (project / "params.yaml").write_text(own)
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
    command = (sys.executable, "-m", "transformer.cli", "verify")
    process = subprocess.Popen(command, cwd=project, env=clean_environment(), stdout=DEVNULL, stderr=DEVNULL)
    until(lambda: [*(project / ".dvc/tmp").glob("verify-*/project/begun")], process)
    process.terminate()
    assert process.wait(20) == 130
    assert not [*(project / ".dvc/tmp").glob("verify-*")]
