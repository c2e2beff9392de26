"""An interrupted training run resumes, and its result is byte-identical to an uninterrupted one's."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.training.golden import RECURRENT
from tests.training.line import CPU, Line, params
from tests.training.resuming import Watcher, data, work
from transformer.core.observer import Observer
from transformer.training import loop
from transformer.training.loop import Fitted, fit
from transformer.training.resume import Resume, interrupts_held_back

__all__ = ["data"]  # a fixture

CASES: dict[str, dict[str, dict[str, Any]]] = {
    "the mean of the last epochs": {"train": {"averaging": "last", "average_epochs": 2, "clip": None}},
    "token batches, accumulation, at first in both directions, SimCut, a moving average": {
        "train": {
            **{"batch_unit": "tokens", "batch_size": 300, "accumulation": 2, "bidirectional_epochs": 1},
            **{"simcut": 1.0, "consistency_from": 2, "averaging": "ema", "ema_decay": 0.9},
        }
    },
    "AdamW, cosine, R-Drop, word dropout, the mean of the best epochs": {
        "train": {
            **{"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "r_drop": 1.0, "word_dropout": 0.2},
            **{"averaging": "best", "average_epochs": 2, "monitor": "accuracy"},
        },
        "model": {"attention_dropout": 0.1, "activation_dropout": 0.1, "tie_embeddings": "all"},
    },
    "a recurrent model, its own words": {"model": RECURRENT | {"teacher_forcing": 0.5}},
}


@pytest.fixture(autouse=True)
def _stops_between_two_points_of_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CURVE_POINTS", 4)


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_training_ends_with_the_same_bytes(name: str, data: Path, tmp_path: Path) -> None:
    """Interrupted within the second epoch, at its last update, and within the third."""
    training = work(data, tmp_path, CASES[name])
    epoch = len([step for step, values in training.points if "train_loss" in values]) // 3
    for stop in (epoch + 2, 2 * epoch, 2 * epoch + 1):
        training.run(stop=stop)
    assert training.finish().points == training.points
    assert not list(training.states.iterdir())


@pytest.mark.parametrize("averaging", ["none", "ema"])
def test_the_best_epoch_so_far_is_part_of_the_state(averaging: str, tmp_path: Path) -> None:
    """The second of four epochs is the best; interrupted within the third, of two updates."""
    settings = params(epochs=9, patience=2, averaging=averaging)

    def run(figures: list[float], stop: int | None = None) -> Fitted:
        watcher = Watcher(stop)
        with Resume(tmp_path / "key", 1000, watcher) as resume:
            return fit(Line(figures), settings, CPU, log_every=1, observer=watcher, resume=resume)

    expected = fit(Line([3.0, 1.0, 2.0, 2.0]), settings, CPU, log_every=1, observer=Observer())
    with pytest.raises(KeyboardInterrupt):
        run([3.0, 1.0], stop=5)
    fitted = run([2.0, 2.0])
    assert fitted.history == expected.history and expected.history.best == 1
    assert fitted.state["weight"].item() == expected.state["weight"].item()


def test_a_second_signal_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)  # background jobs of a shell ignore it
    with pytest.raises(KeyboardInterrupt), interrupts_held_back() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_saving_never_takes_more_than_a_fortieth_of_the_time(tmp_path: Path) -> None:
    """A slow state: its tensors take a while."""
    made = []

    def state() -> dict[str, float]:
        time.sleep(0.02)
        made.append(1)
        return {"value": 1.0}

    with Resume(tmp_path / "key", 1e-9, Observer()) as resume:
        started = time.monotonic()
        while time.monotonic() < started + 0.5:
            resume.checkpoint(1, state)
    assert len(made) == 1
