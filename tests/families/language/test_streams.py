"""Streams of texts: each token is a target once, and a training that remembers them resumes exactly."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from tests.builders import TRAIN, transformer_xl
from tests.training.resuming import Watcher
from transformer.core.observer import Observer
from transformer.data.store import ColumnWriter, Ids, Sequences
from transformer.families.language.streams import EncodedStreams
from transformer.families.language.train import StreamTraining
from transformer.families.language.training_params import LanguageTrainParams
from transformer.nn.device import Compute
from transformer.training.batches import BatchLoss
from transformer.training.loop import Fitted, fit
from transformer.training.resume import Resume

CPU = torch.device("cpu")
BEGIN = 2


def texts() -> list[Ids]:
    random = np.random.default_rng(0)
    return [np.concatenate(([BEGIN], random.integers(5, 30, size), [3])) for size in (30, 1, 0, 9, 17, 2, 23)]


def streams(folder: Path, count: int, **changes: Any) -> EncodedStreams:
    ColumnWriter(folder, "text", 30).write([Sequences.of(texts())])
    config = transformer_xl(**changes).config
    return EncodedStreams(folder, config, streams=count, begin_id=BEGIN, seed=0)


@pytest.mark.parametrize("count", [1, 4, 50])
def test_a_stream_goes_on_where_its_last_segment_ended(count: int, tmp_path: Path) -> None:
    split = streams(tmp_path, count)
    read: list[list[int]] = [[] for _ in range(split.streams)]
    wanted: list[int] = []
    for rows in split.batches():
        batch = split.batch(rows, CPU)
        for stream, ids in zip(read, batch.ids.tolist(), strict=True):
            stream += ids
        wanted += batch.targets.tolist()
    whole = np.concatenate(texts()).tolist()
    joined = [token for stream in read for token in stream]
    assert joined == whole[: len(joined)] and len(whole) - len(joined) <= split.streams
    assert sorted(wanted) == sorted(token for token in whole[1 : len(joined) + 1] if token != BEGIN)
    assert split.lengths.sum() == len(joined)


def test_an_epoch_has_its_own_order_of_whole_texts(tmp_path: Path) -> None:
    split = streams(tmp_path, 1)
    orders = [split.resegmented(None, epoch)._ids for epoch in (1, 1, 2)]
    assert np.array_equal(orders[0], orders[1]) and not np.array_equal(orders[1], orders[2])
    found = np.split(orders[0], np.flatnonzero(orders[0] == BEGIN)[1:])
    assert sorted(map(tuple, found)) == sorted(map(tuple, texts()))


class Full(StreamTraining):
    """One whose device has memory for so many rows, from the third segment on: where another memory would be read."""

    fits = 100

    def loss(self, rows: Ids) -> BatchLoss:
        found = super().loss(rows)
        if len(rows) > self.fits and rows[0] % self.epoch_rows.segments > 1:
            raise torch.OutOfMemoryError
        return found


class Faulty(StreamTraining):
    """One whose third loss is not a number."""

    held: ClassVar[list[Any]] = []

    def loss(self, rows: Ids) -> BatchLoss:
        self.held.append(self.memory)
        found = super().loss(rows)
        return found if len(self.held) != 3 else found._replace(total=found.total * torch.nan)


def test_a_skipped_update_is_not_remembered(tmp_path: Path) -> None:
    split = streams(tmp_path, 3)
    model: dict[str, Any] = {"mask_share": 0.1, "whole_words": False, "epochs": 1, "batch_size": 3}
    given = LanguageTrainParams(**(TRAIN | model | {"non_finite": "skip"}))
    training = Faulty(split, split, given, Compute(CPU, "fp32"), None)
    fit(training, given, training.compute, log_every=1, observer=Observer())
    assert training.held[3] is training.held[2] and training.held[4] is not training.held[3]


def trained(folder: Path, *, fits: int = 100, resume: Resume | None = None, **params: Any) -> Fitted:
    split = streams(folder / "store", 3)
    model: dict[str, Any] = {"mask_share": 0.1, "whole_words": False, "epochs": 3, "batch_size": 3}
    given = LanguageTrainParams(**(TRAIN | model | params))
    training = Full(split, split, given, Compute(CPU, "fp32"), None)
    training.fits = fits
    observer = resume._observer if resume else Observer()
    return fit(training, given, training.compute, log_every=1, observer=observer, resume=resume)


def states(folder: Path, **how: Any) -> torch.Tensor:
    state = trained(folder, **how).state
    return torch.cat([tensor.flatten() for tensor in state.values()])


def test_a_stopped_training_remembers_and_ends_with_the_same_weights(tmp_path: Path) -> None:
    undisturbed = states(tmp_path)
    for stop in (3, 8, 11):
        with Resume(tmp_path / "key", 1000, Watcher(stop)) as resume, pytest.raises(KeyboardInterrupt):
            trained(tmp_path, resume=resume)
    with Resume(tmp_path / "key", 1000, Watcher()) as resume:
        assert torch.equal(states(tmp_path, resume=resume), undisturbed)


def test_a_segment_that_is_read_again_in_parts_is_remembered_once(tmp_path: Path) -> None:
    torch.testing.assert_close(
        states(tmp_path, fits=1, epsilon=1.0, out_of_memory="halve"), states(tmp_path, epsilon=1.0)
    )


def test_segments_of_one_update_remember_each_other(tmp_path: Path) -> None:
    """Two batches of an update are the same as one after the other, if the weights do not change between them."""
    slow: dict[str, Any] = {"learning_rate": 1e-30, "epochs": 1}
    one, two = (trained(tmp_path, accumulation=count, **slow).history.rows[0]["train_loss"] for count in (1, 2))
    assert one == pytest.approx(two, rel=1e-6)
