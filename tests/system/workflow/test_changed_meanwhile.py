"""A file edited while a stage runs is not recorded in dvc.lock as the input of its result."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import until
from tests.training.small import outputs
from transformer.core.files import read_json
from transformer.core.params import parameters_digest
from transformer.workflow.pipeline import stages_in_lock

TRAIN = "train@translation"
SETTINGS = {
    "translation.download.sample_rows": {"train": 120, "validation": 20, "test": 10},
    "translation.tokenize.kind": "whitespace",
    "translation.train.epochs": 8,
    "translation.train.patience": None,
    "runtime.save_every": 0.01,
}
NOT_RECORDED = "changed while the stage ran, so nothing is recorded as its result"

# Runs the real stage script, and edits files between the stage's work and its end.
EDITED = """
import sys
from pathlib import Path
from transformer.core.unchanged import InputSnapshot
from transformer.workflow.stage import main

edit, record = sys.argv.pop(), InputSnapshot.record
InputSnapshot.record = lambda self: (exec(edit, globals()), record(self))
sys.argv.append("translation")
main("download")
"""
APPEND = "p = Path('{}'); p.write_bytes(p.read_bytes() + b'\\n# more\\n')"
LINE = APPEND.replace("# more", "MORE = 1")
REPLACE = "p = Path('params.yaml'); p.write_text(p.read_text().replace({!r}, {!r}))"
HARMLESS = {
    "a comment": APPEND.format("params.yaml"),
    "a section of another stage": REPLACE.format("epochs: 8", "epochs: 13"),
    "the other task": REPLACE.format(
        "\nsentiment:\n  download:\n    source: sample", "\nsentiment:\n  download:\n    source: hub"
    ),
    "the runtime": REPLACE.format("log_every: ", "log_every: 1"),
    "a module that nothing imports": "Path('transformer/data/more.py').write_text('MORE = 1')",
    "code, put back": "p = Path('transformer/core/files.py'); w = p.read_text(); p.write_text('x'); p.write_text(w)",
}
HARMFUL = {
    "a parameter": (
        REPLACE.format("train: 120", "train: 100"),
        f"translation.download.sample_rows.train (120 -> 100) {NOT_RECORDED}: revert the",
    ),
    "a module": (LINE.format("transformer/data/corpus.py"), f"transformer/data/corpus.py {NOT_RECORDED}: revert the"),
    "an input": ("Path('data/local/translation/more.de').write_text('')", "data/local/translation/more.de changed"),
    "a module that the fingerprint does not list": (
        "from importlib import import_module as by; by('.'.join(('transformer', 'nn', 'masks')))",
        "transformer/nn/masks.py was imported, but DVC would see no change of it",
    ),
    "params.yaml that goes": ("Path('params.yaml').unlink()", "params.yaml "),
    "params.yaml that is no YAML": ("Path('params.yaml').write_text('[')", "params.yaml "),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with all inputs of training."""
    clone = make_clone(tmp_path_factory.mktemp("prepared") / "clone")
    clone.change(SETTINGS)
    clone.repro("build_vocab@translation")
    clone.commit("prepared")
    return clone


@pytest.fixture
def clone(prepared: Clone) -> Iterator[Clone]:
    """The clone, restored after the test."""
    yield prepared
    prepared.run("git", "checkout", "-q", ".")
    prepared.run("git", "clean", "-qfdx", "transformer", "data/local")


def edit(clone: Clone, code: str) -> subprocess.CompletedProcess[str]:
    clone.change({"runtime.tracking": False})
    return clone.run("python", "-c", EDITED, code, check=False)


def test_what_dvc_does_not_record_may_change(clone: Clone) -> None:
    """All of it at once: an error would name what it is about."""
    done = edit(clone, "\n".join(HARMLESS.values()))
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("name", HARMFUL)
def test_what_dvc_records_may_not_change(clone: Clone, name: str) -> None:
    code, said = HARMFUL[name]
    done = edit(clone, code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: download@translation: {said}")


def disturbed(clone: Clone, change: str, *command: str) -> str:
    """Train, and edit as soon as the first state is saved; returns the output."""
    states = clone.root / ".dvc" / "tmp" / "resume" / "translation"
    with clone.start(*command) as process:
        until(lambda: [*states.glob("*/*.safetensors")], process, seconds=300)
        exec(change, {"Path": lambda path: clone.root / path})
        printed = process.communicate(timeout=300)[0]
    assert process.returncode != 0, printed
    return printed


def test_a_parameter_edited_while_training_is_recorded_nowhere_and_putting_it_back_trains_nothing(clone: Clone) -> None:
    before, lock = clone.params.read_bytes(), (clone.root / "dvc.lock").read_bytes()
    rate = re.findall(r"learning_rate: (\S+)", before.decode())[0]
    printed = disturbed(clone, REPLACE.format(f"learning_rate: {rate}", "learning_rate: 0.5"), "dvc", "repro", TRAIN)
    (line,) = [line for line in printed.splitlines() if line.startswith(f"error: {TRAIN}: ")]
    assert f"translation.train.learning_rate ({float(rate)} -> 0.5) {NOT_RECORDED}" in line
    assert line.endswith("; a checkpoint is kept, so reverting the change needs no retraining")
    assert (clone.root / "dvc.lock").read_bytes() == lock
    written = outputs(clone.root / "models")

    clone.params.write_bytes(before)
    done = clone.run("dvc", "repro", TRAIN)
    assert "resuming after step" in done.stderr
    assert not re.search(r"epoch \d+/", done.stderr)
    assert outputs(clone.root / "models") == written
    assert not list((clone.root / ".dvc/tmp/resume/translation").iterdir())
    locked = stages_in_lock((clone.root / "dvc.lock").read_bytes(), "the clone")[TRAIN].params
    ran = read_json(clone.root / "reports/translation/ran/train.json")
    assert ran["parameters"] == parameters_digest(locked)
