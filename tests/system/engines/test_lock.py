"""The whole workflow of the profile `smoke` has one dvc.lock, whatever runs it."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import make_clone
from tests.kit import TASKS
from transformer.workflow.pipeline import Stage, stages_in_lock

SHARDS = {f"{task}.train.shards": 2 for task in TASKS}
ENGINES: dict[str, dict[str, Any]] = {
    "two workers": {"workers": 2},
    "two trainers": {"trainers": 2},
    "two actors of Ray": {"engine": "ray", "workers": 2},
    "two machines": {"engine": "ray", "workers": 2},
}


def locked(root: Path, runtime: dict[str, Any]) -> dict[str, Stage]:
    clone = make_clone(root)
    clone.change({"runtime.tracking": False, **SHARDS} | {f"runtime.{name}": value for name, value in runtime.items()})
    clone.run("dvc", "repro", *(f"convert@{task}" for task in TASKS))
    return stages_in_lock((root / "dvc.lock").read_bytes(), "the clone")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    """With one process."""
    return locked(tmp_path_factory.mktemp("alone") / "clone", {})


@pytest.mark.parametrize("engine", ENGINES)
def test_no_engine_changes_the_lock(
    engine: str, alone: dict[str, Stage], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    runtime = dict(ENGINES[engine])
    if engine == "two machines":
        runtime["address"] = request.getfixturevalue("cluster").address
    found = locked(tmp_path / "clone", runtime)
    assert len(found) >= 7 * len(TASKS)
    assert found == alone
