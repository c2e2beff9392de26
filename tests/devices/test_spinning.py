"""Threads of stages and commands wait briefly for each other, unless the user says how long."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from transformer.core.spinning import ROUNDS

START = "import transformer.core.start"
COMMAND = "import sys; sys.argv[1:] = ['parameters', 'hardware']; from transformer.cli import main; main()"


def displayed(code: str, **settings: str) -> str:
    """What OpenMP says of its settings when torch loads it after `code`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import torch"],
        cwd=ROOT,
        env=inherited | {"OMP_DISPLAY_ENV": "verbose", "PYTHONPATH": str(ROOT)} | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("this torch does not use GNU OpenMP")
    return done.stderr


@pytest.mark.parametrize("code", [START, COMMAND])
def test_openmp_reads_the_setting(code: str) -> None:
    """It does not if torch was loaded before."""
    assert f"GOMP_SPINCOUNT = '{ROUNDS}'" in displayed(code)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"GOMP_SPINCOUNT": "77"}, "GOMP_SPINCOUNT = '77'"), ({"OMP_WAIT_POLICY": "passive"}, "GOMP_SPINCOUNT = '0'")],
)
def test_the_users_own_setting_stays(settings: dict[str, str], expected: str) -> None:
    assert expected in displayed(START, **settings)
