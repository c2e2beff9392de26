"""Non-finite numbers and exhausted memory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.stages import Said
from tests.training.line import CPU, Line, params
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.training.batches import BatchLoss
from transformer.training.loop import Fitted, fit
from transformer.training.resume import Resume, saved_checkpoints


class Faulty(Line):
    """Four batches per epoch, some with a non-finite loss, or a finite loss with a non-finite gradient."""

    def __init__(self, *bad: int, without: Sequence[int] = (), kind: str = "loss") -> None:
        super().__init__()
        self.bad, self.without, self.kind = bad, without, kind

    def batches(self, epoch: int) -> Sequence[Ids]:
        return [batch for number, batch in enumerate(np.split(np.arange(8), 4)) if number not in self.without]

    def loss(self, rows: Ids) -> BatchLoss:
        total, nll, predicted, tokens = super().loss(rows)
        if rows[0] // 2 in self.bad:
            # The square root of 0 is 0, but its slope is infinite.
            total = total * float("nan") if self.kind == "loss" else total + (self.model.weight * 0).sum().sqrt()
        return BatchLoss(total, nll, predicted, tokens)


class Full(Line):
    """Batches of eight rows, for more than `fits` of which there is no memory."""

    def __init__(self, fits: int) -> None:
        super().__init__()
        self.fits = fits

    def batches(self, epoch: int) -> Sequence[Ids]:
        return [np.arange(8)]

    def loss(self, rows: Ids) -> BatchLoss:
        if len(rows) > self.fits:
            torch.empty(1 << 60, dtype=torch.uint8)
        return super().loss(rows)


def run(line: Line, observer: Observer | None = None, resume: Resume | None = None, **changes: object) -> Fitted:
    return fit(line, params(**changes), CPU, log_every=1, observer=observer or Observer(), resume=resume)


@pytest.mark.parametrize("kind", ["loss", "gradient"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_training_stops_before_bad_numbers_reach_the_weights(kind: str, clip: float | None) -> None:
    line = Faulty(2, kind=kind)
    with pytest.raises(
        UserError, match=r"not finite at step 3 \(epoch 1, update 3\); the last good checkpoint is none"
    ):
        run(line, epochs=3, clip=clip)
    good = run(Faulty(without=(2, 3)), epochs=1, clip=clip)
    assert torch.equal(line.model.state_dict()["weight"], good.state["weight"])


def test_the_last_good_state_is_named_and_kept(tmp_path: Path) -> None:
    observer = Observer()
    with Resume(tmp_path / "key", 1e-9, observer) as resume, pytest.raises(UserError) as stopped:
        run(Faulty(2), observer, resume)
    (newest, *_) = saved_checkpoints(tmp_path / "key")
    assert f"the last good checkpoint is {newest}: " in str(stopped.value)


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_a_skipped_update_is_as_if_its_batch_were_not_there(kind: str) -> None:
    observer = Said()
    skipped = run(Faulty(1, kind=kind), observer, epochs=2, non_finite="skip", averaging="ema")
    without = run(Faulty(without=(1,)), epochs=2, averaging="ema")
    assert torch.equal(skipped.state["weight"], without.state["weight"])
    assert (skipped.skipped, without.skipped) == (2, 0)
    assert skipped.history.rows[0]["train_loss"] == without.history.rows[0]["train_loss"]
    assert [line.rpartition("step ")[2] for line in observer.lines if "warning" in line] == ["2: skipped", "6: skipped"]


def test_an_epoch_without_any_finite_update_stops() -> None:
    with pytest.raises(UserError, match="every update of epoch 1 had a non-finite loss or gradient"):
        run(Faulty(0, 1, 2, 3), non_finite="skip")


def test_a_batch_that_does_not_fit_is_split_and_updates_the_same() -> None:
    # With a small epsilon, Adam's step does not depend on the gradient's scale.
    line, observer = Full(2), Said()
    state = run(line, observer, epochs=4, epsilon=1.0).state
    torch.testing.assert_close(state, run(Full(8), epochs=4, epsilon=1.0).state)
    warnings = [line.partition(" from now on")[0] for line in observer.lines if "warning" in line]
    assert [line[-12:] for line in warnings] == ["split into 2", "split into 4"]
    assert [len(rows) for rows in line.seen] == [2] * 16


@pytest.mark.parametrize(
    ("fits", "policy", "message"),
    [
        (2, "stop", r"batch of 8 rows: lower train\.batch_size .* set train\.out_of_memory to halve$"),
        (0, "halve", "batch of 8 rows, split into 8: lower train"),
    ],
)
def test_memory_that_no_splitting_helps_ends_in_advice(fits: int, policy: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^out of memory with a {message}"):
        run(Full(fits), out_of_memory=policy)


def test_validation_out_of_memory_ends_in_advice() -> None:
    class Greedy(Line):
        def validate(self) -> dict[str, float]:
            torch.empty(1 << 60, dtype=torch.uint8)
            return super().validate()

    with pytest.raises(UserError, match=r"out of memory in validation: lower train\.batch_size"):
        run(Greedy())
