"""Workers and trainers in processes and in a Ray cluster: the same bytes; what goes wrong is one line."""

import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from tests.builders import small_runtime
from tests.kit import TASKS
from tests.system.engines.work import deadly, refusing
from tests.training.small import ROOT, outputs, paths_in, prepare, run_stage, smoke, train
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.validation import Runtime
from transformer.data.workers import worker_processes
from transformer.nn import device as machine
from transformer.workflow.results import read_committed

ENGINES = pytest.mark.parametrize("engine", ["processes", "ray"])
CHANGES: dict[str, dict[str, Any]] = {
    "download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}},
    "train": {"epochs": 1, "batch_size": 20, "shards": 2},
}


def runtime_of(engine: str, request: pytest.FixtureRequest, **changes: Any) -> Runtime:
    address = request.getfixturevalue("cluster").address if engine == "ray" else None
    return small_runtime(engine=engine, address=address, **changes)


def made(task: str, root: Path, runtime: Runtime) -> dict[str, bytes]:
    """Everything that the stages from tokenize to evaluate write."""
    content = smoke(task, CHANGES | {"evaluate": {"bootstrap_samples": 10}})
    content["runtime"] = runtime.model_dump()
    data = root / "data"
    prepare(content, task, data)
    train(content, task, data, root, observer=Observer())
    run_stage(content, task, "evaluate", paths_in(root, task, data, committed=read_committed), Observer())
    return outputs(root)


FEW = ("processes", "translation")  # the others in `make stress`
CASES = [
    pytest.param(engine, task, marks=() if (engine, task) == FEW else pytest.mark.stress)
    for task in TASKS
    for engine in ("processes", "ray")
]


@pytest.mark.parametrize(("engine", "task"), CASES)
def test_no_engine_changes_a_byte(engine: str, task: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    alone = made(task, tmp_path / "alone", small_runtime())
    found = made(task, tmp_path / "shared", runtime_of(engine, request, workers=2))
    assert found.keys() == alone.keys()
    assert [path for path in found if found[path] != alone[path]] == []
    assert not active_children()


@ENGINES
def test_a_lost_worker_is_replaced(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    runtime = runtime_of(engine, request, workers=2, retries=1)
    items = [(number, tmp_path / "died") for number in range(10)]
    with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
        assert list(ordered_map(deadly, items)) == [-number for number in range(10)]
    (tmp_path / "died").unlink()
    runtime = runtime_of(engine, request, workers=2)
    with (
        pytest.raises(UserError, match=r"^a worker.*memory ran out: lower runtime.workers") as lost,
        worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map,
    ):
        list(ordered_map(deadly, items))
    assert "\n" not in str(lost.value)


@ENGINES
def test_an_error_of_the_work_is_its_own_line(engine: str, request: pytest.FixtureRequest) -> None:
    runtime = runtime_of(engine, request, workers=1)
    with (
        pytest.raises(UserError, match=r"^1 is refused$"),
        worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map,
    ):
        list(ordered_map(refusing, [1]))


PRIVATE = """
from operator import neg
import psutil
from tests.builders import small_runtime
from tests.system.engines.work import deadly, refusing
from transformer.data.workers import worker_processes
with worker_processes(small_runtime(engine="ray", workers=1), initializer=abs, arguments=(0,)) as ordered_map:
    assert list(ordered_map(neg, [1, 2])) == [-1, -2]
    started = psutil.Process().children(recursive=True)
    found = [each for child in started for each in child.net_connections() if each.status == "LISTEN"]
    assert found
    assert {each.laddr.ip for each in found} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
_, alive = psutil.wait_procs(started, timeout=30)
assert not alive
"""


def test_a_private_cluster_listens_to_this_machine_and_ends_with_the_stage() -> None:
    """In a process of its own, as a stage: Ray mixes up a private cluster and one that the same process has joined."""
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    subprocess.run([sys.executable, "-c", PRIVATE], cwd=ROOT, check=True, timeout=200, stdin=subprocess.DEVNULL)


def test_an_address_without_a_cluster_is_one_line() -> None:
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    runtime = small_runtime(engine="ray", workers=1, address="127.0.0.1:1")
    with (
        pytest.raises(UserError, match=r"the Ray cluster at 127\.0\.0\.1:1 cannot be used: ") as error,
        worker_processes(runtime, initializer=abs, arguments=(0,)),
    ):
        pass
    assert "\n" not in str(error.value)


def test_without_ray_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(UserError, match=r"runtime.engine is `ray`, which is not installed: run `pip install"),
        worker_processes(small_runtime(engine="ray", workers=1), initializer=abs, arguments=(0,)),
    ):
        pass


def test_the_private_parts_of_ray_are_those_of_this_version() -> None:
    """`_loopback` replaces two functions of it: look at them again before another version is allowed."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    assert ray.__version__.startswith("2.60.")


def test_more_threads_than_cores_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    said = machine.shared_cores(small_runtime(trainers=3), 2)
    assert said and said.startswith("warning: 3 trainers with 2 threads each share 4 cores")
    assert machine.shared_cores(small_runtime(trainers=2), 2) is None
    assert machine.shared_cores(small_runtime(trainers=1), 9) is None, "one process has what it is given"


@pytest.mark.parametrize(
    ("workers", "threads", "used"), [(3, 2, 2), (2, 2, 2), (9, 1, 4), (3, 4, 0), (2, 9, 0), (1, 9, 1), (0, 2, 0)]
)
def test_no_more_workers_decode_than_have_cores(
    workers: int, threads: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers of two threads on two cores take three times as long as one process."""
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    assert machine.with_own_cores(small_runtime(workers=workers), threads).workers == used
    elsewhere = small_runtime(workers=workers, engine="ray", address="host:1")
    assert machine.with_own_cores(elsewhere, threads) == elsewhere
    unused = small_runtime(workers=workers, address="host:1")
    assert machine.with_own_cores(unused, threads).workers == used, "processes are on this machine"
    monkeypatch.setenv("RAY_ADDRESS", "host:1")
    cluster = small_runtime(workers=workers, engine="ray")
    assert machine.with_own_cores(cluster, threads) == cluster
