"""Workers in processes and in a Ray cluster: the same bytes; what is lost is made again; nothing outlives a stage."""

import os
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.builders import small_runtime
from tests.data.work import deadly, refusing
from tests.kit import TASKS
from tests.system.engines.conftest import NODE
from tests.training.small import ROOT, outputs, paths_in, prepare, run_stage, smoke, train
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.validation import Runtime
from transformer.data.workers import worker_processes
from transformer.workflow.results import read_committed

CHANGES: dict[str, dict[str, Any]] = {
    "download": {"sample_rows": {"train": 120, "validation": 20, "test": 10}},
    "train": {"epochs": 1, "batch_size": 20, "shards": 2},
    "evaluate": {"bootstrap_samples": 10},
}


def made(task: str, root: Path, runtime: Runtime) -> dict[str, bytes]:
    """Everything that the stages from tokenize to evaluate write."""
    content = smoke(task, CHANGES)
    content["runtime"] = runtime.model_dump()
    data = root / "data"
    prepare(content, task, data)
    train(content, task, data, root, observer=Observer())
    run_stage(content, task, "evaluate", paths_in(root, task, data, committed=read_committed), Observer())
    return outputs(root)


RAY = [("ray", task) for task in TASKS]


@pytest.mark.parametrize(("engine", "task"), [("processes", "translation"), *RAY])
def test_no_engine_changes_a_byte(engine: str, task: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue("cluster").address if engine == "ray" else None
    alone = made(task, tmp_path / "alone", small_runtime())
    found = made(task, tmp_path / "shared", small_runtime(engine=engine, address=address, workers=2))
    assert found.keys() == alone.keys()
    assert [path for path in found if found[path] != alone[path]] == []
    assert not active_children()


def test_a_lost_actor_is_replaced_and_an_error_is_one_line(cluster: Any, tmp_path: Path) -> None:
    runtime = small_runtime(engine="ray", address=cluster.address, workers=2, retries=1)
    items = [(number, tmp_path / "died") for number in range(10)]
    with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
        assert list(ordered_map(deadly, items)) == [-number for number in range(10)]
    lost, refused = "^a worker.*memory ran out: lower runtime.workers", "is refused$"
    cases: tuple[tuple[Any, int, str], ...] = ((deadly, 0, lost), (refusing, 1, refused))
    for work, retries, message in cases:
        (tmp_path / "died").unlink(missing_ok=True)
        runtime = small_runtime(engine="ray", address=cluster.address, workers=2, retries=retries)
        with (
            pytest.raises(UserError, match=message) as caught,
            worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map,
        ):
            list(ordered_map(work, items))
        assert "\n" not in str(caught.value)


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


def test_an_address_without_a_cluster_is_one_line() -> None:
    pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    runtime = small_runtime(engine="ray", workers=1, address="127.0.0.1:1")
    with (
        pytest.raises(UserError, match=r"the Ray cluster at 127\.0\.0\.1:1 cannot be used: ") as error,
        worker_processes(runtime, initializer=abs, arguments=(0,)),
    ):
        pass
    assert "\n" not in str(error.value)


def test_the_private_parts_of_ray_are_those_of_this_version() -> None:
    """`_loopback` replaces two functions of it: look at them again before another version is allowed."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    assert ray.__version__.startswith("2.60.")


STAGE = """
import sys, time
from tests.builders import small_runtime
from transformer.data.workers import worker_processes
if __name__ == "__main__":
    runtime = small_runtime(engine=sys.argv[1], workers=2, address=sys.argv[2] or None)
    with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
        for number, _ in enumerate(ordered_map(time.sleep, [0.1] * 4 + [600] * 9)):
            if number == 3:
                print("working", flush=True)
"""


def actors() -> list[psutil.Process]:
    """Those of any Ray cluster."""
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if "_Actor" in " ".join(process.info["cmdline"] or [])]


@pytest.mark.parametrize("engine", ["processes", "ray", "joined"])
def test_nothing_outlives_a_stage_that_is_killed(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Idle workers too: each holds the pipe open on which the others wait. A private cluster of Ray listens to no other
    machine; one that was joined is free for the next stage.
    """
    address = request.getfixturevalue("cluster").address if engine == "joined" else ""
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed (the extra `cluster`)")
    (tmp_path / "stage.py").write_text(STAGE)
    command = [sys.executable, str(tmp_path / "stage.py"), engine.replace("joined", "ray"), address]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as stage:
        assert stage.stdout and stage.stdout.readline() == "working\n"
        started = actors() if address else psutil.Process(stage.pid).children(recursive=True)
        if engine == "ray":
            found = [each.laddr.ip for one in started for each in one.net_connections() if each.status == "LISTEN"]
            assert {*found} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"} and found
        stage.kill()
    assert len(started) >= 2
    _, alive = psutil.wait_procs(started, timeout=30)
    assert not alive
    if address:
        runtime = small_runtime(engine="ray", address=address, workers=2)
        with worker_processes(runtime, initializer=abs, arguments=(0,)) as ordered_map:
            assert list(ordered_map(abs, [-1, -2])) == [1, 2]
