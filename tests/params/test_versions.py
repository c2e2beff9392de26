"""Each stage's versions are those in requirements.lock of the packages that it imports."""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.closure import third_party
from tests.conftest import ROOT
from transformer.commands.profiles import profile_params
from transformer.core.errors import UserError
from transformer.core.task import open_task
from transformer.core.versions import other_versions, read_versions, remedy, versions_file, write_versions
from transformer.registry import STAGES, TASKS

LIBRARIES = {
    "ctranslate2": "ctranslate2",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "pyarrow": "pyarrow",
    "sacrebleu": "sacrebleu",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "sentencepiece": "sentencepiece",
    "sklearn": "scikit-learn",
    "spacy": "spacy",
    "tokenizers": "tokenizers",
    "torch": "torch",
}
"""Libraries that can change a byte of an output: import name and package name."""
WITH_OUTPUTS = [(stage, task) for stage in STAGES if stage != "report" for task in TASKS]


@pytest.mark.parametrize(("stage", "task"), WITH_OUTPUTS)
def test_a_stages_file_names_what_it_imports(stage: str, task: str) -> None:
    imported = {LIBRARIES[name] for name in third_party(stage, task) if name in LIBRARIES}
    assert set(read_versions(ROOT / versions_file(stage, open_task(task).family))) == {"python", *imported}


def test_the_files_have_the_versions_of_the_lock() -> None:
    locked = read_versions(ROOT / "requirements.lock")
    files = sorted((ROOT / "versions").rglob("*.txt"))
    assert files == sorted(ROOT / versions_file(stage, open_task(task).family) for stage, task in WITH_OUTPUTS)
    for path in files:
        assert read_versions(path).items() <= locked.items(), path


def test_dvc_yaml_names_each_file() -> None:
    with Repo(str(ROOT)) as repo:
        named = {
            stage.addressing: [dep.def_path for dep in stage.deps if dep.def_path.startswith("versions/")]
            for stage in repo.index.stages
        }
    with_outputs = {
        f"{stage}@{task}": [versions_file(stage, open_task(task).family).as_posix()] for stage, task in WITH_OUTPUTS
    }
    assert named == with_outputs | {f"report@{task}": [] for task in TASKS}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "versions", tmp_path / "versions")
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    return tmp_path


def relock(root: Path, was: str, now: str) -> None:
    lock = root / "requirements.lock"
    text = lock.read_text()
    assert was in text
    lock.write_text(text.replace(was, now))


def test_writing_changes_just_the_files_of_what_changed_once(root: Path) -> None:
    assert write_versions(root) == []
    locked = read_versions(root / "requirements.lock")
    relock(root, f"scikit-learn=={locked['scikit-learn']}", "scikit-learn==99.1")
    assert write_versions(root) == [Path(f"versions/classifier/{stage}.txt") for stage in ("evaluate", "train")]
    assert "scikit-learn==99.1\n" in (root / "versions/classifier/evaluate.txt").read_text()
    assert write_versions(root) == []
    relock(root, f"# python=={locked['python']}", "# python==3.99")
    assert len(write_versions(root)) == len(WITH_OUTPUTS)


def test_a_name_that_the_lock_does_not_have_is_one_line(root: Path) -> None:
    with (root / "versions/seq2seq/train.txt").open("a") as stream:
        stream.write("nothing==1\n")
    with pytest.raises(
        UserError, match=r"versions/seq2seq/train\.txt names nothing, which is not in requirements\.lock"
    ):
        write_versions(root)


def test_what_runs_in_place_of_what_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    numpy, python = metadata.version("numpy"), f"{sys.version_info.major}.{sys.version_info.minor}"
    path = root / versions_file("train", "seq2seq")
    path.write_text(f"python=={python}\nnumpy=={numpy}\n")
    assert other_versions("train", "seq2seq") == []
    path.write_text("python==3.99\nnumpy==0.1\nnothing==1\n")
    assert other_versions("train", "seq2seq") == [
        f"python {python} instead of 3.99",
        f"numpy {numpy} instead of 0.1",
        "nothing none instead of 1",
    ]
    assert "install requirements.lock" in remedy(other_versions("train", "seq2seq"), "train", "translation", "seq2seq")
    path.write_text(f"python==3.99\nnumpy=={numpy}\n")
    assert remedy(other_versions("train", "seq2seq"), "train", "translation", "seq2seq") == (
        "its results may differ in their last bits; `make clean-venv`, then `make repro PYTHON=python3.99`"
    )
    path.unlink()
    assert other_versions("train", "seq2seq") == []


def test_a_stage_says_so_in_one_line_and_goes_on(tmp_path: Path) -> None:
    """Run the real stage in a folder with parameters and another version."""
    text = profile_params(ROOT, "smoke").replace("tracking: true", "tracking: false")
    (tmp_path / "params.yaml").write_text(text)
    path = tmp_path / versions_file("download", "seq2seq")
    path.parent.mkdir(parents=True)
    path.write_text("pyarrow==0.1\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "stages.download", "translation")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert line == (
        f"download@translation: warning: runs under pyarrow {metadata.version('pyarrow')} instead of 0.1: install"
        " requirements.lock and run `dvc repro --force --single-item download@translation`, or write these into"
        " versions/seq2seq/download.txt"
    )
    assert (tmp_path / "data/translation/corpus/provenance.json").is_file()
