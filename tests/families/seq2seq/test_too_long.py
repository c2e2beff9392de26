"""`train.too_long`: what becomes of pairs that are longer than the model's positions."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages import Said
from tests.training.small import outputs, prepare, smoke, train
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.data.store import ColumnWriter, EncodedColumn, Sequences

LONGEST = 12


def content(policy: str, longest: int = LONGEST) -> dict[str, Any]:
    """Parameters under which some pairs are too long."""
    changes: dict[str, dict[str, Any]] = {
        "download": {"sample_rows": {"train": 80, "validation": 20, "test": 10}},
        "model": {"max_length": longest},
        "train": {"epochs": 1, "batch_size": 20, "too_long": policy},
    }
    return smoke("translation", changes)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoded pairs."""
    folder = tmp_path_factory.mktemp("long")
    prepare(content("cut"), "translation", folder)
    return folder


def trained(policy: str, data: Path, root: Path) -> tuple[dict[str, Any], dict[str, bytes], list[str]]:
    """The metrics, the weights and what was said."""
    said = Said()
    train(content(policy), "translation", data, root, observer=said)
    return read_json(root / "reports/translation/training.json"), outputs(root / "models"), said.lines


def test_pairs_left_out_are_as_if_they_were_not_there(data: Path, tmp_path: Path) -> None:
    (store,) = [path.parent for path in data.rglob("train/source.ids.npy")]
    columns = {side: EncodedColumn(store, side) for side in ("source", "target")}
    fits = np.all([column.lengths <= LONGEST for column in columns.values()], axis=0)
    long = int((~fits).sum())
    assert 5 < long < 60
    metrics, weights, said = trained("leave_out", data, tmp_path / "left out")
    assert (metrics["left_out"], metrics["truncated"]) == (long, 0)
    assert f"train: {80 - long} pairs" in said
    assert f"warning: {long} pairs of train are longer than model.max_length ({LONGEST}) and were left out" in said

    shutil.copytree(data, tmp_path / "short")
    for side, column in columns.items():
        rows = [column[row] for row in np.flatnonzero(fits).tolist()]
        ColumnWriter(tmp_path / "short" / store.relative_to(data), side, 1000).write([Sequences.of(rows)])
    assert trained("cut", tmp_path / "short", tmp_path / "removed")[1] == weights

    metrics, cut, said = trained("cut", data, tmp_path / "cut")
    assert metrics["truncated"] == long and "left_out" not in metrics and cut != weights


def test_a_limit_that_leaves_nothing_is_one_line(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"every pair of train is longer than model.max_length \(3\): raise it, or set"):
        train(content("leave_out", 3), "translation", data, tmp_path, observer=Observer())
