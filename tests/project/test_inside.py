"""The versions of the libraries whose internals the project uses."""

from importlib.metadata import version

from transformer.workflow.dvc import DVC
from transformer.workflow.mlflow import MLFLOW


def test_dvc_and_mlflow_are_of_the_versions_that_were_looked_into() -> None:
    """After an upgrade: check these modules against the new version, run tests/tracking and tests/comparing, then set
    the version there."""
    assert version("dvc").startswith(f"{DVC}.")
    assert version("mlflow").startswith(f"{MLFLOW}.")
