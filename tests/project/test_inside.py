"""Where the project uses other libraries' internals, and the versions that it was written for."""

import re
from importlib.metadata import version

from tests.conftest import ROOT
from transformer.workflow.dvc import DVC
from transformer.workflow.mlflow import MLFLOW

ROOMS = {
    r"from dvc_data|oid_to_path|workspace_queue|celery_queue": "workflow/dvc.py",
    r"MlflowClient\(|search_runs|log_batch|create_run": "workflow/mlflow.py",
}


def test_dvc_and_mlflow_are_of_the_versions_that_were_looked_into() -> None:
    """After an upgrade: check these modules against the new version, run tests/tracking and tests/comparing, then set
    the version there."""
    assert version("dvc").startswith(f"{DVC}.")
    assert version("mlflow").startswith(f"{MLFLOW}.")


def test_no_other_module_looks_into_them() -> None:
    for path in (ROOT / "transformer").rglob("*.py"):
        name, text = path.relative_to(ROOT / "transformer").as_posix(), path.read_text(encoding="utf-8")
        assert {room for pattern, room in ROOMS.items() if re.search(pattern, text)} <= {name}
