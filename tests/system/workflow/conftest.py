"""Fixtures of several tests."""

from collections.abc import Iterator

import pytest

from tests.conftest import Clone

QUIET = {"runtime.tracking": False}
"""For tests that do not look at rows, which take seconds."""


@pytest.fixture
def restored(workflow: Clone) -> Iterator[Clone]:
    """The shared clone without tracking, reset to its commit afterwards."""
    workflow.change(QUIET)
    yield workflow
    workflow.run("git", "checkout", "-q", "--", ".")
    workflow.run("dvc", "checkout", "-q", "--force")
