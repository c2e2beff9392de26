"""Stages that compute float32 on a CPU hold the libraries to what all processors have; others are left alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import ROOT
from transformer.core.portable import PINS, has_avx2

pytestmark = pytest.mark.skipif(not has_avx2(), reason="the pins are for x86-64 processors with AVX2")


SCRIPT = """
import os, sys
import transformer.core.start
assert not {"torch", "numpy"} & sys.modules.keys()
print(*(f"{name}={value}" for name, value in os.environ.items()), sep="\\n")
"""
UNSET = {name: value for name, value in os.environ.items() if name not in PINS}


def started(stage: str, folder: Path, hardware: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """What a stage's script prints that shows its environment after its first import."""
    (folder / "stages").mkdir()
    (folder / "stages/__init__.py").touch()
    (folder / "stages" / f"{stage}.py").write_text(SCRIPT)
    (folder / "params.yaml").write_text(f"hardware: {hardware}\n")
    command = (sys.executable, "-m", f"stages.{stage}", "translation")
    environment = UNSET | settings | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("stage", "hardware", "pinned"),
    [
        ("train", "{device: cpu, precision: fp32, portable: true}", True),
        ("train", "{device: cpu, precision: fp32, portable: false}", False),
        ("train", "{device: cpu, precision: bf16, portable: true}", False),
        ("evaluate", "{device: cuda, precision: fp32, portable: true}", False),
        ("build_vocab", "{device: cpu, precision: bf16}", True),
    ],
)
def test_pins(stage: str, hardware: str, pinned: bool, tmp_path: Path) -> None:
    done = started(stage, tmp_path, hardware)
    assert done.returncode == 0, done.stderr
    found = {f"{name}={value}" for name, value in PINS.items()} & set(done.stdout.splitlines())
    assert len(found) == (len(PINS) if pinned else 0)


def test_another_setting_is_refused_in_one_line(tmp_path: Path) -> None:
    done = started("train", tmp_path, "{device: cpu, precision: fp32, portable: true}", MKL_CBWR="AVX2")
    assert done.returncode == 1
    assert done.stderr.startswith("error: train: MKL_CBWR is AVX2, but ") and done.stderr.count("\n") == 1
