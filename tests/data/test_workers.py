"""Worker processes: items in order, a lost worker, errors in one line. Ray: tests/system/engines."""

import os
import sys
from pathlib import Path

import pytest

from tests.builders import small_runtime
from tests.data.work import deadly, refusing
from transformer.core.errors import UserError
from transformer.data.workers import worker_processes
from transformer.nn import device as machine


def test_processes_are_the_same_for_all_splits_and_take_no_more_than_they_can_work_on() -> None:
    items = iter(range(1000))
    with worker_processes(small_runtime(workers=1), initializer=abs, arguments=(0,)) as ordered_map:
        first, second = (set(ordered_map(eval, ["__import__('os').getpid()"] * 10)) for _ in range(2))
        assert first == second != {os.getpid()}
        results = ordered_map(abs, items)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        assert next(items) < 10


def test_a_lost_worker_is_replaced(tmp_path: Path) -> None:
    items = [(number, tmp_path / "died") for number in range(10)]
    with worker_processes(small_runtime(workers=2, retries=1), initializer=abs, arguments=(0,)) as ordered_map:
        assert list(ordered_map(deadly, items)) == [-number for number in range(10)]
    (tmp_path / "died").unlink()
    with (
        pytest.raises(UserError, match=r"^a worker.*memory ran out: lower runtime.workers") as lost,
        worker_processes(small_runtime(workers=2), initializer=abs, arguments=(0,)) as ordered_map,
    ):
        list(ordered_map(deadly, items))
    assert "\n" not in str(lost.value)


def test_an_error_of_the_work_is_its_own_line() -> None:
    with (
        pytest.raises(UserError, match=r"^1 is refused$"),
        worker_processes(small_runtime(workers=1), initializer=abs, arguments=(0,)) as ordered_map,
    ):
        list(ordered_map(refusing, [1]))


def test_without_ray_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(UserError, match=r"runtime.engine is `ray`, which is not installed: run `pip install"),
        worker_processes(small_runtime(engine="ray", workers=1), initializer=abs, arguments=(0,)),
    ):
        pass


def test_more_threads_than_cores_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    said = machine.shared_cores(small_runtime(trainers=3), 2)
    assert said and said.startswith("warning: 3 trainers with 2 threads each share 4 cores")
    assert machine.shared_cores(small_runtime(trainers=2), 2) is None


@pytest.mark.parametrize(("workers", "threads", "used"), [(3, 2, 2), (9, 1, 4), (2, 9, 0), (1, 9, 1)])
def test_no_more_workers_decode_than_have_cores(
    workers: int, threads: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers of two threads on two cores take three times as long as one process."""
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    assert machine.with_own_cores(small_runtime(workers=workers), threads).workers == used
    elsewhere = small_runtime(workers=workers, engine="ray", address="host:1")
    assert machine.with_own_cores(elsewhere, threads) == elsewhere
    monkeypatch.setenv("RAY_ADDRESS", "host:1")
    cluster = small_runtime(workers=workers, engine="ray")
    assert machine.with_own_cores(cluster, threads) == cluster
