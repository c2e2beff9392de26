"""Training writes the same bytes with any memory allocator."""

import os
import subprocess
import sys
from collections.abc import Mapping
from ctypes.util import find_library
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.training.small import ROOT, outputs, prepare, smoke

TASK = "translation"
SAID = f"train@{TASK}: using tcmalloc\n"
TCMALLOC = find_library("tcmalloc_minimal") or find_library("tcmalloc")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs of training, its result with the C library's allocator, and what it said."""
    root = tmp_path_factory.mktemp("workspace")
    content = smoke(TASK, {"download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}}})
    content["runtime"] |= {"tracking": False, "save_every": 0}
    with (root / "params.yaml").open("w") as stream:
        YAML().dump(content, stream)
    prepare(content, TASK, root / "data" / TASK)
    (root / "said").write_text(train(root, {"LD_PRELOAD": ""}))
    (root / "models").rename(root / "expected")
    return root


def train(root: Path, told: Mapping[str, str]) -> str:
    """Run the stage's script; returns its output."""
    inherited = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment = inherited | {"PYTHONPATH": str(ROOT)} | dict(told)
    command = (sys.executable, "-m", "stages.train", TASK)
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stderr


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc_minimal", "mimalloc"])
def test_an_allocator_that_is_given_is_kept(name: str, workspace: Path) -> None:
    library = find_library(name)
    if library is None:
        pytest.skip(f"lib{name} is not on this machine")
    assert SAID not in train(workspace, {"LD_PRELOAD": library})
    assert outputs(workspace / "models") == outputs(workspace / "expected")


@pytest.mark.skipif(TCMALLOC is None, reason="tcmalloc is not on this machine")
def test_tcmalloc_is_taken_and_said_unless_told_otherwise(workspace: Path) -> None:
    assert SAID not in (workspace / "said").read_text()
    assert SAID in train(workspace, {})
    assert outputs(workspace / "models") == outputs(workspace / "expected")


def test_without_tcmalloc_nothing_is_said(workspace: Path) -> None:
    if TCMALLOC is not None:
        pytest.skip("tcmalloc is on this machine")
    assert "tcmalloc" not in train(workspace, {})
    assert outputs(workspace / "models") == outputs(workspace / "expected")
