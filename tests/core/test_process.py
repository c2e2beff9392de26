"""Cores that a quota grants, and how threads of one process wait for each other and for other programs."""

import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit import ROOT
from transformer.core import process
from transformer.core.process import ROUNDS, quota, watched

START = "import transformer.core.start"
LOAD = "import contextlib, transformer\nwith contextlib.suppress(Exception): transformer.load('missing')\n0"
VERSION_1 = "9:name=systemd:/a\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/a/b\n", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000"}, 0.5),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "150000 100000"}, 1.5),
        (VERSION_1, {"cpu/a/b/cpu.cfs_quota_us": "50000", "cpu/a/b/cpu.cfs_period_us": "100000"}, 0.5),
        (VERSION_1, {"cpu/a/b/cpu.cfs_quota_us": "-1", "cpu/a/b/cpu.cfs_period_us": "100000"}, math.inf),
        ("", {}, math.inf),
    ],
)
def test_the_tightest_group_counts(groups: str, files: dict[str, str], cores: float, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert quota(groups, tmp_path) == cores


@pytest.mark.parametrize(
    ("code", "settings", "rounds"),
    [(START, {}, ROUNDS), (LOAD, {}, ROUNDS), (START, {"GOMP_SPINCOUNT": "77"}, 77)],
)
def test_openmp_spins_briefly_unless_the_user_says_how_long(code: str, settings: dict[str, str], rounds: int) -> None:
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
    assert f"GOMP_SPINCOUNT = '{rounds}'" in done.stderr


@pytest.mark.parametrize(("waited", "times"), [(0.6, 1), (0.4, 0)])
def test_a_processor_that_others_keep_busy_is_said_once(
    waited: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three minutes, of which the threads waited for a processor most or less than half."""
    assert process._waited() >= 0
    seconds, said = [0], list[str]()

    def tick() -> int:
        seconds[0] += 1
        return seconds[0]

    monkeypatch.setattr(process, "time", SimpleNamespace(perf_counter=tick))
    monkeypatch.setattr(process, "_waited", lambda: waited * seconds[0])
    assert [*watched(range(180), said.append)] == [*range(180)]
    assert len(said) == times
    assert all("other programs keep the processor busy: in the last 30 s this one waited 18 s" in line for line in said)
