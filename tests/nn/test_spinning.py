"""Threads of stages, commands and loaded models wait briefly for each other, unless the user says how long."""

import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT
from transformer.core import process as spinning
from transformer.core.process import ROUNDS, watched

START = "import transformer.core.start"
COMMAND = "import sys; sys.argv[1:] = ['parameters', 'hardware']; from transformer.cli import main; main()"

LOAD = "import contextlib, transformer\nwith contextlib.suppress(Exception): transformer.load('missing')\n0"


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


@pytest.mark.parametrize("code", [START, COMMAND, LOAD])
def test_openmp_reads_the_setting(code: str) -> None:
    """It does not if torch was loaded before."""
    assert f"GOMP_SPINCOUNT = '{ROUNDS}'" in displayed(code)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"GOMP_SPINCOUNT": "77"}, "GOMP_SPINCOUNT = '77'"), ({"OMP_WAIT_POLICY": "passive"}, "GOMP_SPINCOUNT = '0'")],
)
def test_the_users_own_setting_stays(settings: dict[str, str], expected: str) -> None:
    assert expected in displayed(START, **settings)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not say how long threads wait")
@pytest.mark.parametrize("others", [0, 3])
def test_a_processor_that_others_keep_busy_is_said_once(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process works half a second on one core; others: busy processes on the same core."""
    monkeypatch.setattr(spinning, "WATCHED", 0.2)
    monkeypatch.setattr(spinning, "WAITED", 0.5 if others else 10.0)  # the machine has other work
    core = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
    own, said = os.sched_getaffinity(0), list[str]()
    try:
        for pid in (0, *(process.pid for process in busy)):
            os.sched_setaffinity(pid, {core})
        until = time.monotonic() + 2
        for _ in watched(iter(lambda: time.monotonic() < until, False), said.append):
            sum(range(10_000))
    finally:
        os.sched_setaffinity(0, own)
        for process in busy:
            process.kill()
            process.wait()
    assert len(said) == bool(others)
    assert all(
        re.match(r"warning: other programs keep the processor busy: in the last 0 s .* 0 s", line) for line in said
    )
