"""Schedules, compared with their closed forms."""

import math
from typing import Any

import pytest

from tests.training.line import params
from transformer.training.schedule import Schedule


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {1: 0.1, 1000: 0.1}),
        ({"warmup": 10}, {1: 0.01, 5: 0.05, 10: 0.1, 1000: 0.1}),
        ({"schedule": "inverse_sqrt", "warmup": 100}, {1: 0.001, 100: 0.1, 400: 0.05, 10000: 0.01}),
        ({"schedule": "inverse_sqrt"}, {1: 0.1, 4: 0.05}),
        ({"schedule": "linear", "warmup": 200}, {100: 0.05, 200: 0.1, 600: 0.05, 1000: 0.0, 1001: 0.0}),
        ({"schedule": "cosine"}, {500: 0.05, 250: 0.05 * (1 + math.sqrt(0.5)), 1000: 0.0}),
        # Vaswani et al. 2017, eq. 3, at d_model 512 and 4,000 warmup steps: 512^-0.5 * 4000^-0.5 at the peak
        (
            {"schedule": "noam", "warmup": 4000, "learning_rate": 1.0},
            {4000: (512 * 4000) ** -0.5, 1000: (512 * 4000) ** -0.5 / 4, 16000: (512 * 4000) ** -0.5 / 2},
        ),
    ],
)
def test_schedules_follow_their_closed_forms(changes: dict[str, Any], expected: dict[int, float]) -> None:
    schedule = Schedule(params(**changes), total=1000, d_model=512)
    assert {step: schedule(step) for step in expected} == pytest.approx(expected, abs=1e-12)
