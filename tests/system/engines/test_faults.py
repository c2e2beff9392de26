"""What is lost with Ray is made again, and what a killed stage leaves behind ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.builders import small_runtime
from tests.system.engines.conftest import NODE
from tests.training.small import ROOT
from transformer.data.workers import worker_processes

SHARED_MEMORY = Path("/dev/shm")


def slow(item: int) -> int:
    time.sleep(0.2)
    return -item


def test_a_removed_machine_loses_no_item(cluster: Any) -> None:
    """It held items of its worker, which goes on at a machine that is added."""
    runtime = small_runtime(engine="ray", address=cluster.address, workers=2, retries=2)
    found = []
    with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
        for number, answer in enumerate(ordered_map(slow, range(30))):
            found.append(answer)
            if number == 5:
                cluster.remove_node(cluster.machines.pop(), allow_graceful=False)
                cluster.machines.append(cluster.add_node(**NODE))
    assert found == [-item for item in range(30)]


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return ""


STAGE = """
import sys, time
from tests.builders import small_runtime
from tests.system.engines.conftest import NODE
from transformer.data.workers import worker_processes
address = sys.argv[1] or None
with worker_processes(
    small_runtime(engine="ray", workers=2, address=address), initializer=abs, arguments=(0,)
) as ordered_map:
    for _ in ordered_map(time.sleep, [0.1, 0.1] + [600] * 9):
        print("working", flush=True)
"""


def killed_stage(address: str) -> tuple[set[int], set[Path]]:
    """Kill a process that works with Ray. Returns its processes, and files in shared memory before it started."""
    memory = set(SHARED_MEMORY.glob("*plasma*"))
    others = set(psutil.pids())
    stage = subprocess.Popen([sys.executable, "-c", STAGE, address], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert stage.stdout is not None
    assert [stage.stdout.readline() for _ in range(2)] == ["working\n"] * 2
    started = set(psutil.pids()) - others
    os.kill(stage.pid, signal.SIGKILL)
    stage.wait()
    return started, memory


def within(seconds: float, gone: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not gone() and time.monotonic() < end:
        time.sleep(0.5)
    return gone()


def named(pids: set[int]) -> list[str]:
    """The command lines of those of Ray that are alive."""
    lines = [_line(each) for each in psutil.process_iter() if each.pid in pids]
    return [line for line in lines if "ray" in line]


def test_a_killed_stage_leaves_nothing_of_its_private_cluster() -> None:
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    started, memory = killed_stage("")
    assert len(started) > 3, "a cluster"
    assert within(30, lambda: not named(started)), named(started)
    assert set(SHARED_MEMORY.glob("*plasma*")) <= memory


def test_a_killed_stage_leaves_a_joined_cluster_free_for_the_next(cluster: Any) -> None:
    started, _ = killed_stage(cluster.address)
    workers = [line for line in named(started) if "_Actor" in line]
    assert within(30, lambda: not [line for line in named(started) if "_Actor" in line]), workers
    runtime = small_runtime(engine="ray", address=cluster.address, workers=2)
    with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
        assert list(ordered_map(abs, [-1, -2])) == [1, 2]
