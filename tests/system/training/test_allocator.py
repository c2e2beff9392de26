"""Training takes tcmalloc where it is, and writes the same bytes with any memory allocator."""

import os
import subprocess
import sys
from collections.abc import Mapping
from ctypes.util import find_library
from pathlib import Path

import pytest

from tests.system.training.running import written
from tests.training.small import ROOT, outputs

TCMALLOC = find_library("tcmalloc_minimal") or find_library("tcmalloc")


def train(root: Path, task: str, told: Mapping[str, str]) -> str:
    """Run the stage's script; returns its output."""
    inherited = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment = inherited | {"PYTHONPATH": str(ROOT)} | dict(told)
    command = (sys.executable, "-m", "stages.train", task)
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stderr


@pytest.mark.skipif(TCMALLOC is None, reason="tcmalloc is not on this machine")
def test_tcmalloc_is_taken_and_said_unless_told_otherwise(tmp_path: Path) -> None:
    task = written(tmp_path, "translation", save_every=0)
    said = f"train@{task}: using tcmalloc\n"
    assert said not in train(tmp_path, task, {"LD_PRELOAD": ""})
    (tmp_path / "models").rename(tmp_path / "expected")
    assert said in train(tmp_path, task, {})
    assert outputs(tmp_path / "models") == outputs(tmp_path / "expected")
