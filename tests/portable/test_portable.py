"""Every kind of model, computed on this processor and on emulated ones, has the recorded bits."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import ROOT, clean_environment
from tests.portable.kinds import RECORDED, prepare_all
from transformer.core.portable import PINS, has_avx2

pytestmark = pytest.mark.skipif(not has_avx2(), reason="the recorded bits are those of x86-64 processors with AVX2")
QEMU = "qemu-x86_64"
CPUS = pytest.mark.parametrize("cpu", ["Haswell", "EPYC"])


def emulated(cpu: str) -> list[str]:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed (Debian's qemu-user)")
    return [QEMU, "-cpu", cpu]


def digests(folder: Path, *emulator: str) -> dict[str, dict[str, str]]:
    command = [*emulator, sys.executable, "-m", "tests.portable.kinds", str(folder)]
    environment = clean_environment(PYTHONPATH=str(ROOT), **PINS)
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def test_every_kind_of_model_has_the_recorded_bits(tmp_path: Path) -> None:
    """After a change of what is computed: `python -m tests.portable.kinds FOLDER record`, with the pins set."""
    assert digests(tmp_path) == json.loads(RECORDED.read_text())


@pytest.mark.stress
@CPUS
def test_an_emulated_processor_has_the_recorded_bits(cpu: str, tmp_path: Path) -> None:
    emulator = emulated(cpu)
    prepare_all(tmp_path)
    assert digests(tmp_path, *emulator) == json.loads(RECORDED.read_text())
