"""Where the project uses other libraries' internals, and the versions that it was written for."""

import ast
import re
from importlib.metadata import version

from tests.conftest import ROOT
from transformer.results.dvc_inside import DVC
from transformer.tracking.mlflow_inside import MLFLOW

_PRIVATE = {"dvc_data", "sqlalchemy"}
_ROOMS = {"dvc_data": "results/dvc_inside.py", "sqlalchemy": "tracking/mlflow_inside.py"}


def test_dvc_and_mlflow_are_of_the_versions_that_were_looked_into() -> None:
    """After an upgrade: check results/dvc_inside.py and tracking/mlflow_inside.py against the new version, run
    tests/tracking and tests/comparing, then set the version there."""
    assert version("dvc").startswith(f"{DVC}.")
    assert version("mlflow").startswith(f"{MLFLOW}.")


def test_no_other_module_looks_into_them() -> None:
    for path in (ROOT / "transformer").rglob("*.py"):
        name = path.relative_to(ROOT / "transformer").as_posix()
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in _PRIVATE:
                assert name == _ROOMS[node.module.split(".")[0]]
        if name not in ("results/dvc_inside.py", "tracking/mlflow_inside.py"):
            assert not re.search(r"\b(stage_cache|oid_to_path|logged_models|run_uuid)\b", text), name
