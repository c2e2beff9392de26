"""Runs the tests of `pretended.py` in a separate process: autograd counts device types once, at first use."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.kit import ROOT


@pytest.mark.skipif(
    not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch has no Python backends with a device of their own (2.13 has)",
)
def test_training_and_decoding_keep_the_rules_of_other_devices() -> None:
    file = Path(__file__).with_name("pretended.py")
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(file))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "[100%]" in done.stdout, done.stdout[-5000:]
