"""Every kind of model, computed on this processor and on emulated ones, has the recorded bits."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit import ROOT, clean_environment
from tests.system.portable.kinds import KINDS, RECORDED, prepare_all
from transformer.core.portable import PINS, has_avx2

pytestmark = pytest.mark.skipif(not has_avx2(), reason="the recorded bits are those of x86-64 processors with AVX2")
QEMU = "qemu-x86_64"


def emulated(cpu: str) -> list[str]:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed (Debian's qemu-user)")
    return [QEMU, "-cpu", cpu]


def digests(folder: Path, kinds: Sequence[str] = (), *, emulator: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    command = [*emulator, sys.executable, "-m", "tests.system.portable.kinds", str(folder), *kinds]
    environment = clean_environment(PYTHONPATH=str(ROOT), **PINS)
    for _ in range(5):  # QEMU 7.2 itself crashes now and then
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        if not emulator or done.returncode != -signal.SIGSEGV:
            break
    assert done.returncode == 0
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def test_every_kind_of_model_has_the_recorded_bits(tmp_path: Path) -> None:
    """After a change of what is computed, write them anew: tests/system/portable/kinds.py."""
    assert digests(tmp_path) == json.loads(RECORDED.read_text())


@pytest.mark.parametrize("cpu", ["Haswell", "EPYC"])
def test_an_emulated_processor_has_the_recorded_bits(cpu: str, tmp_path: Path) -> None:
    """scikit-learn in a process of its own: beside PyTorch's threads QEMU 7.2 loses its way."""
    emulator, expected = emulated(cpu), json.loads(RECORDED.read_text())
    prepare_all(tmp_path)
    alone = [kind for kind in KINDS if "n-grams" in kind]
    for kinds in alone, [kind for kind in KINDS if kind not in alone]:
        assert digests(tmp_path, kinds, emulator=emulator) == {kind: expected[kind] for kind in kinds}
