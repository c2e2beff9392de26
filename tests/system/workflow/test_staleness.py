"""What a change of parameters or code runs again; an equivalent edit runs nothing."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Clone
from tests.kit import TASKS
from tests.training.small import outputs
from transformer.core.code import Tree

ATTENTION = "transformer/nn/attention.py"
COMPARE = ("transformer", "compare", "--task", "sentiment", "--samples", "0")


def test_comments_order_and_spelling_of_numbers_are_no_change(restored: Clone) -> None:
    text = restored.params.read_text(encoding="utf-8")
    sections = text.split("\n\n")[1:]
    random.Random(0).shuffle(sections)
    text = "\n\n".join(["# another comment", *sections]).replace("clip: 1.0", "clip: 1")
    text = text.replace("learning_rate: 1e-3", "learning_rate: 0.001").replace("epochs: 2", "epochs: 2.0")
    restored.params.write_text(text, encoding="utf-8")
    assert restored.repro() == []


def test_a_change_reruns_its_stage_and_what_its_output_reaches_and_going_back_only_shows_it(restored: Clone) -> None:
    original, lock = restored.params.read_bytes(), (restored.root / "dvc.lock").read_bytes()
    model = (restored.root / "models/sentiment/trained/model.safetensors").read_bytes()
    restored.change({"sentiment.train.epochs": 1})
    stages = ("train", "figures", "evaluate", "export", "convert", "report")
    assert sorted(restored.repro()) == sorted(f"{stage}@sentiment" for stage in stages)
    assert (restored.root / "models/sentiment/trained/model.safetensors").read_bytes() != model
    page = (restored.root / "reports/sentiment/report.html").read_text(encoding="utf-8")
    commit = restored.run("git", "rev-parse", "--short=10", "HEAD").stdout.strip()
    assert f"The previous result is the one that commit {commit} holds. The same in both: data, code." in page
    assert '<th scope="row" dir="auto">sentiment.train.epochs</th><td dir="auto">2</td><td dir="auto">1</td>' in page
    restored.params.write_bytes(original)
    assert restored.repro() == ["report@sentiment"]
    assert (restored.root / "dvc.lock").read_bytes() == lock
    assert (restored.root / "models/sentiment/trained/model.safetensors").read_bytes() == model


@contextmanager
def other_code(clone: Clone, changes: dict[str, bytes]) -> Iterator[None]:
    """These files with other contents for a while."""
    before = {name: (clone.root / name).read_bytes() for name in changes}
    for name, content in changes.items():
        (clone.root / name).write_bytes(content)
    try:
        yield
    finally:
        for name, content in before.items():
            (clone.root / name).write_bytes(content)


def with_line(clone: Clone, name: str, line: bytes = b"MORE = 1") -> dict[str, bytes]:
    return {name: (clone.root / name).read_bytes() + b"\n" + line + b"\n"}


def test_an_edit_without_meaning_runs_nothing_but_code(restored: Clone) -> None:
    """In every file of every stage: a comment, a blank line, another docstring."""
    before = {name: (restored.root / name).read_bytes() for name in Tree(restored.root).names if name.endswith(".py")}
    changes = {name: re.sub(rb'\A"""', b'"""More. ', text) + b"\n\n\n# a comment\n" for name, text in before.items()}
    with other_code(restored, changes):
        assert restored.repro() == []
        assert restored.run("git", "status", "--porcelain", "reports", "dvc.lock").stdout == ""


@pytest.fixture
def edited(restored: Clone) -> Iterator[Clone]:
    """The shared clone with a line more in the report's style, which only the reports read."""
    lock = (restored.root / "dvc.lock").read_bytes()
    with other_code(restored, with_line(restored, "transformer/reporting/content.py")):
        yield restored
    for task in TASKS:
        restored.run("python", "-m", "stages.code", task)
    (restored.root / "dvc.lock").write_bytes(lock)


def test_an_edit_is_seen_before_dvc_sees_it_and_runs_what_it_can_matter_to(edited: Clone) -> None:
    reports = [f"report@{task}" for task in TASKS]
    said = edited.run("transformer", "check", check=False)
    assert said.returncode == 1
    assert [line.split(": ") for line in said.stdout.splitlines()[1:]] == [
        [report, "transformer/reporting/content.py"] for report in sorted(reports)
    ]
    assert "3 stages are not up to date" in said.stderr
    assert sorted(edited.repro()) == sorted(reports)
    assert edited.run("transformer", "check").stdout.splitlines()[-1] == "every stage is up to date"


def test_code_that_is_no_python_stops_before_anything_is_removed(restored: Clone) -> None:
    files = {folder: outputs(restored.root / folder).keys() for folder in ("data", "models", "reports")}
    with other_code(restored, with_line(restored, ATTENTION, b"def f(:")):
        done = restored.run("dvc", "repro", check=False)
    assert done.returncode != 0
    assert "error: code@translation: transformer/nn/attention.py is not valid Python" in done.stderr
    assert {folder: outputs(restored.root / folder).keys() for folder in files} == files


@pytest.mark.parametrize("command", ["dvc commit --force", "dvc exp save --name claimed"])
def test_code_that_dvc_records_without_a_run_is_told_apart(edited: Clone, command: str) -> None:
    """After an edit of a stage that has an output: its result is one of other code."""
    name = "claimed" if "claimed" in command else "workspace"
    with other_code(edited, with_line(edited, ATTENTION)):
        for task in TASKS:
            edited.run("python", "-m", "stages.code", task)
        edited.run(*command.split())
        said = edited.run(*COMPARE, "HEAD", name).stderr
    assert f"train, figures, evaluate, export, convert of {name} ran with other code than dvc.lock has" in said
    edited.run("git", "checkout", "-q", "dvc.lock", "reports")


def test_an_edit_committed_without_a_run_is_told(restored: Clone) -> None:
    with other_code(restored, with_line(restored, ATTENTION)):
        restored.run("git", "commit", "-qam", "an edit")
    said = restored.run(*COMPARE, "HEAD", "HEAD~").stderr
    restored.run("git", "reset", "-q", "--soft", "HEAD~")
    restored.run("git", "reset", "-q")
    assert said.startswith("sentiment: the result of HEAD is older than what has changed since (train@sentiment: trans")
