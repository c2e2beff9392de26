"""A quota of processor time counts like a number of cores."""

import math
from pathlib import Path

import pytest

from transformer.core.process import quota


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")


VERSION_1 = "9:name=systemd:/a\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/a/b\n", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000"}, 0.5),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "150000 100000"}, 1.5),
        ("0::/\n", {"cpu.max": "200000 100000"}, 2),
        ("0::/a/b\n", {"cpu.max": "max 100000"}, math.inf),
        (VERSION_1, {"cpu/a/b/cpu.cfs_quota_us": "50000", "cpu/a/b/cpu.cfs_period_us": "100000"}, 0.5),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        (VERSION_1, {"cpu/a/b/cpu.cfs_quota_us": "-1", "cpu/a/b/cpu.cfs_period_us": "100000"}, math.inf),
        ("", {}, math.inf),
    ],
)
def test_the_tightest_group_counts(groups: str, files: dict[str, str], cores: float, tmp_path: Path) -> None:
    write(tmp_path, files)
    assert quota(groups, tmp_path) == cores
