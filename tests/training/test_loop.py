"""The loop and early stopping."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from tests.training.line import CPU, Line, params, run
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.training.batches import BatchLoss
from transformer.training.loop import fit

T = TypeVar("T")
NAN = float("nan")


class OneBatch(Line):
    def batches(self, epoch: int) -> Sequence[Ids]:
        return [np.arange(8)]


class Uneven(Line):
    """The rows of `OneBatch` in two batches."""

    def batches(self, epoch: int) -> Sequence[Ids]:
        return [np.arange(5), np.arange(5, 8)]


class Told(Observer):
    """The points of the curves, and the updates of each epoch with those said to follow."""

    def __init__(self) -> None:
        self.epochs: list[tuple[int | None, int]] = []
        self.points: list[dict[str, float]] = []

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.points.append(dict(values))

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterable[T]:
        self.epochs.append((total, after))
        return items


def test_a_parameter_follows_its_share_of_the_learning_rate() -> None:
    """Adam's first step is the learning rate, whatever the gradient."""
    moved = []
    for scales in ({}, {"weight": 0.25}):
        line = OneBatch()
        line.lr_scales = scales
        start = line.model.weight.item(), line.model.bias.item()
        run(line, epochs=1)
        moved.append((abs(line.model.weight.item() - start[0]), abs(line.model.bias.item() - start[1])))
    (weight, bias), (scaled, same) = moved
    assert scaled == pytest.approx(weight / 4, rel=1e-4) and same == bias > 0


def test_the_loss_falls_and_every_batch_is_seen() -> None:
    line, told = Line(), Told()
    rows = fit(line, params(epochs=30), CPU, log_every=1, observer=told).history.rows
    assert rows[-1]["train_loss"] < rows[0]["train_loss"] / 10
    assert len(line.seen) == 60
    assert [row["step"] for row in rows[:3]] == [2, 4, 6]
    assert told.epochs == [(2, 2 * later) for later in reversed(range(30))]


def test_the_best_epochs_weights_are_kept() -> None:
    fitted = run(Line([3.0, 1.0, 2.0]))
    second = run(Line([3.0, 1.0]), epochs=2)
    assert fitted.history.best_row["epoch"] == 2
    assert fitted.state["weight"].item() == second.state["weight"].item()
    assert fitted.state["weight"].item() != run(Line([3.0]), epochs=1).state["weight"].item()
    assert run(Line([3.0, 1.0, 2.0]), monitor="accuracy").history.best_row["epoch"] == 2, "highest at the lowest loss"


class Ties(Line):
    """Its validation accuracy is the same in every epoch."""

    def validate(self) -> dict[str, float]:
        return super().validate() | {"validation_accuracy": 0.9}


def test_of_epochs_with_the_same_accuracy_the_lower_loss_is_better() -> None:
    fitted = run(Ties([0.026, 0.01, 0.003, 0.004]), monitor="accuracy", epochs=4, patience=2)
    assert len(fitted.history.rows) == 4, "a lower loss at the same accuracy counts as progress"
    assert fitted.history.best_row["epoch"] == 3


@pytest.mark.parametrize("monitor", ["loss", "accuracy"])
@pytest.mark.parametrize("averaging", ["none", "ema", "best"])
def test_an_epoch_whose_validation_is_no_number_is_never_the_best(monitor: str, averaging: str) -> None:
    changes: dict[str, Any] = {"monitor": monitor, "averaging": averaging, "average_epochs": 1}
    fitted = run(Line([NAN, 3.0, 2.0, NAN, 1.5]), epochs=4, patience=2, **changes)
    assert fitted.history.best_row["epoch"] == 3
    if averaging == "best":
        _, _, third = plain([NAN, 3.0, 2.0])
        assert fitted.state["weight"].item() == pytest.approx(third.item())


@pytest.mark.parametrize("averaging", ["none", "ema", "best", "last"])
def test_a_training_without_a_finite_validation_is_one_line(averaging: str) -> None:
    with pytest.raises(UserError, match=r"^validation_loss of the weights to keep is nan, so no model is written: "):
        run(Line([NAN] * 9), averaging=averaging, patience=2)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_accumulated_batches_update_as_one_large_batch(optimizer: str) -> None:
    # With a small epsilon, Adam's step does not depend on the gradient's scale.
    changes, live = {"optimizer": optimizer, "epsilon": 1.0}, Told()
    parts = fit(Uneven(), params(accumulation=2, **changes), CPU, log_every=1, observer=live)
    whole = fit(OneBatch(), params(**changes), CPU, log_every=1, observer=Observer())
    assert parts.steps == whole.steps == 3
    assert parts.state["weight"].item() == pytest.approx(whole.state["weight"].item(), rel=1e-6)
    losses = [row["train_loss"] for row in whole.history.rows]
    assert [row["train_loss"] for row in parts.history.rows] == pytest.approx(losses, rel=1e-6)
    shown = [point["train_loss"] for point in live.points if "train_loss" in point and "epoch" not in point]
    assert shown == pytest.approx(losses, rel=1e-6), "of the whole update"


def test_a_mean_of_epochs_is_kept_and_validated() -> None:
    mean = torch.stack(plain([3.0, 1.0, 2.0])[1:]).mean().item()
    assert run(Line([3.0, 1.0, 2.0]), averaging="last").state["weight"].item() == pytest.approx(mean)
    best = run(Line([1.0, 3.0, 2.0, 0.5]), averaging="best")
    first, _, third = plain([1.0, 3.0, 2.0])
    assert best.state["weight"].item() == pytest.approx(((first + third) / 2).item())
    assert best.metrics["validation_loss"] == 0.5  # that of the mean, validated after the last epoch


def plain(validation: list[float]) -> list[torch.Tensor]:
    """The weight after each epoch."""
    states = [run(Line([9.0] * epoch + [0.0]), epochs=epoch + 1).state["weight"] for epoch in range(len(validation))]
    return [state.flatten()[0] for state in states]


def test_the_moving_average_follows_its_closed_form() -> None:
    """Training goes on with its own weights."""

    class Recorder(Line):
        def __init__(self) -> None:
            super().__init__()
            self.weights: list[float] = []

        def loss(self, rows: Ids) -> BatchLoss:
            self.weights.append(self.model.weight.item())
            return super().loss(rows)

    line = Recorder()
    history = run(line, epochs=4).history
    weights = [*line.weights[1:], run(Line(), epochs=4, averaging="last", average_epochs=1).state["weight"].item()]
    shares = [0.6**age for age in reversed(range(len(weights)))]
    expected = sum(share * weight for share, weight in zip(shares, weights, strict=True)) / sum(shares)
    averaged = run(Line([2.0, 1.0, 0.5, 0.2]), averaging="ema", ema_decay=0.6, epochs=4)
    assert averaged.state["weight"].item() == pytest.approx(expected, rel=1e-5)
    assert [row["train_loss"] for row in history.rows] == [row["train_loss"] for row in averaged.history.rows]


def test_weight_decay_spares_vectors() -> None:
    start = Line().model.state_dict()
    one_step = run(OneBatch(), optimizer="adamw", weight_decay=0.5, epochs=1).state
    free = run(OneBatch(), optimizer="adamw", epochs=1).state
    assert (free["weight"] - one_step["weight"]).item() == pytest.approx(0.1 * 0.5 * start["weight"].item(), rel=1e-4)
    assert one_step["bias"].item() == free["bias"].item()
