"""`train.bidirectional_epochs`: the first epochs read every pair in both directions, the others only to the target."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import LAYERS
from tests.training.resuming import Watcher
from tests.training.small import prepare, smoke, train
from transformer.core.errors import UserError
from transformer.core.files import read_table
from transformer.data.store import ColumnWriter, Sequences
from transformer.data.vocabulary import read_vocabularies
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.pairs import EncodedPairs

BOTH = 2
ROWS = 60
CHANGES: dict[str, dict[str, Any]] = {
    "download": {"sample_rows": {"train": ROWS, "validation": 20, "test": 10}},
    "tokenize": {"kind": "none"},
    "vocab": {"kind": "bpe", "joint": True, "max_size": 300},
    "train": {
        "epochs": 5,
        "bidirectional_epochs": BOTH,
        "batch_size": 20,
        "patience": None,
        "learning_rate": 0.01,
        "schedule": "linear",
        "warmup": 0,
    },
}
SOURCES, TARGETS = [[2, 7, 8, 3], [2, 9, 3]], [[2, 11, 3], [2, 12, 13, 14, 15, 3]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    prepare(smoke("translation", CHANGES), "translation", folder)
    return folder


def pairs(folder: Path, size: int = 20, longest: int = 32) -> EncodedPairs:
    model = Seq2SeqParams(**LAYERS | {"max_length": longest}, encoder_layers=1, decoder_layers=1, tie_embeddings="none")
    config = Seq2SeqConfig(model=model, source_size=size, target_size=size, source_pad_id=0, target_pad_id=0)
    return EncodedPairs(folder, config)


def test_every_pair_comes_in_both_directions(tmp_path: Path) -> None:
    for side, rows in (("source", SOURCES), ("target", TARGETS)):
        ColumnWriter(tmp_path / "train", side, 20).write([Sequences.of([np.array(row) for row in rows])])
    stored = pairs(tmp_path / "train", longest=5)
    both = stored.both_directions()
    assert (len(stored), len(both)) == (2, 4)
    assert both.lengths.tolist() == [[4, 3], [3, 5], [3, 4], [5, 3]]
    read = both.pairs(np.array([3, 0, 2]))
    assert [row.tolist() for row in read.sources] == [[2, 12, 13, 14, 3], SOURCES[0], TARGETS[0]]  # cut, with its end
    assert [row.tolist() for row in read.targets] == [SOURCES[1], TARGETS[0], SOURCES[0]]
    # Padding and the places of predicted tokens are those of the direction.
    source, target = both.batch(np.array([2, 3]), torch.device("cpu"))
    assert source.shape == (2, 5) and target.shape == (2, 4)
    assert both.places(np.array([2, 3]), torch.device("cpu")).tolist() == [0, 1, 2, 3, 4]


def test_it_ends_in_one_direction(data: Path, tmp_path: Path) -> None:
    """Twice the updates at first; the rate falls to 0 at the last update, and what is left is right from the start.

    An update with a second pass counts twice.
    """
    for changes, later in (({}, [15, 9, 6, 3, 0]), ({"r_drop": 1.0, "consistency_from": 4}, [21, 15, 12, 3, 0])):
        watcher = Announcing()
        content = smoke("translation", CHANGES | {"train": CHANGES["train"] | changes})
        train(content, "translation", data, tmp_path, observer=watcher)
        history = list(read_table(tmp_path / "reports/translation/history.tsv"))
        assert [int(float(row["step"])) for row in history] == [6, 12, 15, 18, 21]
        rates = [float(row["learning_rate"]) for row in history]
        assert rates[-1] == 0 and rates == sorted(rates, reverse=True) and rates[-2] > 0
        assert watcher.later == later


def test_two_vocabularies_cannot_be_used_as_one(tmp_path: Path) -> None:
    """Also where both have as many entries."""
    changes = CHANGES | {"vocab": {"joint": False, "kind": "bpe", "max_size": 100}}
    prepare(smoke("translation", changes), "translation", tmp_path)
    sizes = {side: each.size for side, each in read_vocabularies(tmp_path / "vocab").items()}
    assert sizes["source"] == sizes["target"]
    tied = {"model": {"tie_embeddings": "all"}, "train": CHANGES["train"] | {"bidirectional_epochs": 0}}
    for more, name in (({}, r"train\.bidirectional_epochs"), (tied, r"model\.tie_embeddings `all`")):
        content = smoke("translation", changes | more)
        with pytest.raises(UserError, match=rf"{name} needs one vocabulary .* vocab\.joint"):
            train(content, "translation", tmp_path, tmp_path, observer=Watcher())


class Announcing(Watcher):
    """Notes how many updates are said to come after each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.later: list[int] = []

    def progress(self, items: Any, *, total: int | None, what: str, after: int = 0) -> Any:
        if what.startswith("epoch"):
            self.later.append(after)
        return super().progress(items, total=total, what=what, after=after)
