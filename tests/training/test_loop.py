"""Schedules, the loop, early stopping, and what a training leaves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.builders import classifier
from transformer.errors import UserError
from transformer.nn.classifier.config import ClassifierConfig
from transformer.nn.seq2seq.config import Seq2SeqConfig
from transformer.observer import Observer
from transformer.params.schema import Hardware
from transformer.text.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.device import Compute, prepare
from transformer.training.loop import BatchLoss, Fitted, fit
from transformer.training.schedule import learning_rate_at
from transformer.training.trained import load_config, load_weights, save_trained

CPU = Compute(torch.device("cpu"), "fp32")


def params(**changes: Any) -> TrainParams:
    base: dict[str, Any] = {
        "seed": 1,
        "epochs": 3,
        "patience": None,
        "batch_size": 4,
        "learning_rate": 0.1,
        "schedule": "constant",
        "warmup": 0,
        "monitor": "loss",
        "clip": None,
    }
    return TrainParams(**(base | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {1: 0.1, 1000: 0.1}),
        ({"warmup": 10}, {1: 0.01, 5: 0.05, 10: 0.1, 1000: 0.1}),
        ({"schedule": "inverse_sqrt", "warmup": 100}, {1: 0.001, 100: 0.1, 400: 0.05, 10000: 0.01}),
        ({"schedule": "inverse_sqrt"}, {1: 0.1, 4: 0.05}),
    ],
)
def test_schedules_follow_their_closed_forms(changes: dict[str, Any], expected: dict[int, float]) -> None:
    assert {step: learning_rate_at(step, params(**changes)) for step in expected} == pytest.approx(expected)


class Line:
    """Fits y = 2x; its validation figures are given."""

    def __init__(self, validation: Sequence[float] = (), *, fault: float = 1.0) -> None:
        torch.manual_seed(0)
        self.model: nn.Module = nn.Linear(1, 1)
        self.figures = iter(validation)
        self.fault = fault
        self.seen: list[list[int]] = []

    def batches(self, epoch: int) -> Sequence[Ids]:
        return np.split(np.arange(8), 2)

    def loss(self, rows: Ids) -> BatchLoss:
        self.seen.append(rows.tolist())
        x = torch.from_numpy(rows).float()[:, None] / 8
        error = (self.model(x) - 2 * x) * self.fault
        return BatchLoss(error.square().sum(), len(rows), tokens=len(rows))

    def validate(self) -> dict[str, float]:
        assert not self.model.training
        figure = next(self.figures, 0.0)
        return {"validation_loss": figure, "validation_accuracy": -figure}


def run(line: Line, **changes: Any) -> Fitted:
    return fit(line, params(**changes), CPU, log_every=1, observer=Observer())


def test_the_loss_falls_and_every_batch_is_seen() -> None:
    line = Line()
    rows = run(line, epochs=30).history.rows
    assert rows[-1]["train_loss"] < rows[0]["train_loss"] / 10
    assert len(line.seen) == 60
    assert [row["step"] for row in rows[:3]] == [2, 4, 6]


def test_the_best_epochs_weights_are_kept() -> None:
    fitted = run(Line([3.0, 1.0, 2.0]))
    second = run(Line([3.0, 1.0]), epochs=2)
    assert fitted.history.best_row["epoch"] == 2
    assert fitted.state["weight"].item() == second.state["weight"].item()
    assert fitted.state["weight"].item() != run(Line([3.0]), epochs=1).state["weight"].item()


def test_accuracy_is_better_when_higher() -> None:
    assert run(Line([3.0, 1.0, 2.0]), monitor="accuracy").history.best_row["epoch"] == 2


def test_patience_stops_after_so_many_worse_epochs() -> None:
    fitted = run(Line([1.0, 2.0, 3.0, 0.5]), epochs=9, patience=2)
    assert len(fitted.history.rows) == 3
    assert fitted.history.best_row["epoch"] == 1


def test_clipping_bounds_the_update() -> None:
    plain, clipped = (run(Line(), epochs=1, clip=clip).state["weight"].item() for clip in (None, 1e-12))
    start = Line().model.state_dict()["weight"].item()
    assert abs(clipped - start) < abs(plain - start) / 10


def test_a_loss_that_is_no_number_stops_in_one_line() -> None:
    with pytest.raises(UserError, match=r"loss is (nan|inf) at step 1: lower train.learning_rate"):
        run(Line(fault=float("inf")))


def test_the_same_seed_gives_the_same_bytes() -> None:
    one, two = (run(Line()).state["weight"] for _ in range(2))
    assert torch.equal(one, two)


def test_a_missing_device_is_one_clear_line() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match=r"hardware.device is `cuda`"):
            prepare(Hardware(device="cuda", precision="fp32", threads=1))
    threads = torch.get_num_threads()
    try:
        assert prepare(Hardware(device="cpu", precision="bf16", threads=1)).precision == "bf16"
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)


def test_a_saved_model_opens_as_the_same(tmp_path: Path) -> None:
    model = classifier().float()
    save_trained(tmp_path, model.config, model.state_dict())
    config = load_config(tmp_path, ClassifierConfig)
    assert config == model.config
    other = classifier(pooling="mean").float()
    nn.init.zeros_(other.output.weight)
    load_weights(tmp_path, other)
    assert torch.equal(other.output.weight, model.output.weight)


def test_broken_or_foreign_models_are_one_clear_line(tmp_path: Path) -> None:
    model = classifier().float()
    with pytest.raises(UserError, match=r"model.safetensors is missing"):
        load_weights(tmp_path, model)
    save_trained(tmp_path, model.config, model.state_dict())
    with pytest.raises(UserError, match=r"config.json: `config\."):
        load_config(tmp_path, Seq2SeqConfig)
    with pytest.raises(UserError, match="broken or of another model"):
        load_weights(tmp_path, classifier(d_model=32).float())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match="broken or of another model"):
        load_weights(tmp_path, model)
