"""Threads of stages and commands wait briefly for each other, unless the user says how long."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT
from transformer.core.spinning import ROUNDS

START = "import transformer.core.start"
COMMAND = "import sys; sys.argv[1:] = ['parameters', 'hardware']; from transformer.cli import main; main()"


def displayed(code: str, **settings: str) -> str:
    """What torch's OpenMP says of its settings when it is loaded after `code`, without all else of torch."""
    spec = find_spec("torch")
    assert spec and spec.origin
    library = next(Path(spec.origin).parent.glob("lib/libgomp*"), None)
    if library is None:
        pytest.skip("this torch does not use GNU OpenMP")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import ctypes; ctypes.CDLL({str(library)!r})"],
        cwd=ROOT,
        env=inherited | {"OMP_DISPLAY_ENV": "verbose", "PYTHONPATH": str(ROOT)} | settings,
        capture_output=True,
        text=True,
        check=True,
    )
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
