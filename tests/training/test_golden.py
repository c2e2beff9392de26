"""Detects code changes that change how a variant trains; if intended, record the losses again."""

import json
from pathlib import Path

import pytest

from tests.training.golden import RECORDED, UPDATES, VARIANTS, losses

EXPECTED = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_first_updates_are_those_recorded(variant: str, folder: Path) -> None:
    found = losses(variant, folder)
    assert len(found) == UPDATES
    # Other CPUs' kernels sum in another order; over twenty updates that grows to at most 1e-4.
    assert found == pytest.approx(EXPECTED[variant], rel=1e-3)


def test_no_variant_trains_like_another() -> None:
    assert EXPECTED.keys() == {*VARIANTS}
    assert len({tuple(values) for values in EXPECTED.values()}) == len(VARIANTS)
