"""Pins that make float32 on CPUs bit-identical on every x86-64 processor with AVX2 (docs/design.md).

The libraries select kernels by processor, each with its own order of summation. Limited to the common instruction
set, they agree at equal `hardware.threads`. They read the variables when they are loaded.
"""

import os
import platform
import sys
from pathlib import Path

from transformer.core.errors import UserError

PINS = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
    "MKL_CBWR": "COMPATIBLE",  # PyTorch's batched products; AVX2 is not the same on Intel's and AMD's
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # linear layers: nn/kernels/linear.py
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy's and SciPy's products
    "OPENBLAS_NUM_THREADS": "1",  # otherwise the number of cores
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
_PORTABLE = {"device": "cpu", "precision": "fp32", "portable": True}
_BEFORE_HARDWARE = ("download", "tokenize", "build_vocab")
"""Stages whose computation does not depend on `hardware`; none uses a GPU or bf16."""


def pin_stage(params: Path = Path("params.yaml")) -> None:
    """Set the pins for this process and its children if it is a stage with `hardware.portable`.

    Exits with one line if a variable has another value.
    """
    package, _, stage = getattr(sys.modules["__main__"].__spec__, "name", "").partition(".")
    if package != "stages" or not has_avx2() or not (stage in _BEFORE_HARDWARE or _portable(params)):
        return
    for name, value in PINS.items():
        if os.environ.setdefault(name, value) != value:
            sys.exit(
                f"error: {stage}: {name} is {os.environ[name]}, but float32 on CPUs is computed alike on every"
                f" processor, which needs {value}: unset it, or set hardware.portable to false"
            )


def has_avx2() -> bool:
    """True on an x86-64 processor that supports the pinned instruction set."""
    try:
        return platform.machine() == "x86_64" and " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def _portable(params: Path) -> bool:
    from transformer.core.params import read_params

    try:
        hardware = read_params(params).get("hardware")
    except UserError:
        return False  # the stage reports it
    return isinstance(hardware, dict) and hardware | _PORTABLE == hardware
