"""The predictions of the default run's models: README's examples, and sentences that were written before training.

`make repro` trains these models, in minutes; a checkout without them skips these tests. `.ci/run` runs them
after `make repro`, with DEFAULT_RUN=required, which turns a skip into a failure.
"""

import json
import os
import re
import shlex
import subprocess
from functools import cache
from typing import Any

import pytest

import transformer
from tests.conftest import ROOT
from tests.kit import TASKS
from transformer.core.files import read_table
from transformer.workflow.results import changed_code

_EXAMPLE = re.compile(r"^ {4}transformer (translate|classify) (\"[^\"]+\") +# (\S.*)$", re.MULTILINE)
"""A command without options, and its expected output: the translation or the label."""
_RIGHT = 18  # of the 20 sentences of a task


@cache
def _missing() -> str:
    """Why this checkout has no models of the default run; empty if it has them."""
    if any(not (ROOT / f"models/{task}/bundle").is_dir() for task in TASKS):
        return "models/TASK/bundle is missing"
    if subprocess.run(("git", "diff", "--quiet", "HEAD", "--", "params.yaml"), cwd=ROOT).returncode:
        return "params.yaml is not the committed one"
    command = ("dvc", "status", "--json", "--with-deps", *(f"export@{task}" for task in TASKS))
    status = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if status.returncode:
        return f"`dvc status` fails: {status.stderr.strip()}"
    changed = [name for name in (*json.loads(status.stdout), *changed_code(ROOT)) if not name.startswith("code@")]
    return f"changed since the last run: {', '.join(changed)}" if changed else ""


@pytest.fixture(scope="module", autouse=True)
def _default_run() -> None:
    if reason := _missing():
        told = f"no models of the default run here ({reason}): `make repro` makes them"
        if os.environ.get("DEFAULT_RUN") == "required":
            pytest.fail(told)
        pytest.skip(told)


def _answers(task: str, texts: list[str]) -> list[str]:
    model: Any = transformer.load(ROOT / "models" / task / "bundle")
    return model.translate(texts) if task == "translation" else [label for label, _ in model.classify(texts)]


def test_the_python_in_the_readme_prints_what_stands_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    monkeypatch.chdir(ROOT)
    exec(block, {})
    shown = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]
    assert len(shown) == 4 and capsys.readouterr().out.splitlines() == shown


def test_the_examples_of_the_first_page_are_right() -> None:
    examples = _EXAMPLE.findall((ROOT / "docs" / "start.md").read_text(encoding="utf-8"))
    assert {command for command, _, _ in examples} == {"translate", "classify"}
    for command, quoted, shown in examples:
        task = "translation" if command == "translate" else "sentiment"
        assert _answers(task, shlex.split(quoted)) == [shown]


@pytest.mark.parametrize(("task", "text", "answer"), [("translation", "de", "en"), ("sentiment", "text", "label")])
def test_fresh_sentences_are_right(task: str, text: str, answer: str) -> None:
    rows = list(read_table(ROOT / "tests" / "project" / "fresh" / f"{task}.tsv"))
    given = _answers(task, [row[text] for row in rows])
    wrong = [(row, said) for row, said in zip(rows, given, strict=True) if said != row[answer].lower()]
    assert len(rows) - len(wrong) >= _RIGHT, wrong
