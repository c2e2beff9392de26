"""Runs the tests of `pretended.py` in a separate process: autograd counts device types once, at first use."""

import subprocess
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.mark.skipif(
    not hasattr(torch.utils, "backend_registration")
    or not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch has no Python backends with a device of their own (2.13 has)",
)
@pytest.mark.parametrize("chosen", ["not stress", pytest.param("stress", marks=pytest.mark.stress)])
def test_training_and_decoding_keep_the_rules_of_other_devices(chosen: str) -> None:
    command = ("python", "-m", "pytest", "-p", "no:cacheprovider", "-m", chosen, str(HERE / "pretended.py"))
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout or "[100%]" in done.stdout
