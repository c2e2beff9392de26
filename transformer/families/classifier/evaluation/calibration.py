"""Whether probabilities can be believed: whether of the texts with a probability of 0.8 four in five are positive."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from transformer.evaluation.bootstrap import Floats

Labels = NDArray[np.int8]
_BINS = 10
_CERTAIN = 5e-7  # half of the last digit that probabilities are rounded to
_TEMPERATURES = (0.05, 20.0)
_DIGITS = 6


class Bin(NamedTuple):
    """Texts of like probability: a point of the reliability diagram (Niculescu-Mizil and Caruana 2005)."""

    probability: float
    """Their mean probability of the positive class."""
    positive: float
    """The share of them that is positive."""
    calibrated: float
    """What `positive` would be if the probabilities were right."""
    reviews: int


def reliability(labels: Labels, positive: Floats) -> list[Bin]:
    """Ten bins of equal width over the probability of the positive class; empty ones are left out."""
    bins = np.minimum((positive * _BINS).astype(int), _BINS - 1)
    rows = []
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            mean, share = (round(float(values[inside].mean()), _DIGITS) for values in (positive, labels))
            rows.append(Bin(mean, share, mean, int(inside.sum())))
    return rows


def expected_calibration_error(labels: Labels, positive: Floats) -> float:
    """The mean distance of `probability` and `positive` in the bins, by their texts (Naeini et al. 2015, ECE)."""
    rows = reliability(labels, positive)
    return round(sum(abs(row.probability - row.positive) * row.reviews for row in rows) / max(len(labels), 1), _DIGITS)


def fitted_temperature(labels: Labels, positive: Floats) -> float:
    """The T that minimises the cross-entropy of softmax(logits / T) (Guo et al. 2017, section 4.2); 1 without texts.

    To be fitted on validation. Above 1 the model was too sure. Looked for from 0.05 to 20.
    """
    if not len(labels):
        return 1.0
    odds = _log_odds(positive) * np.where(labels == 1, 1, -1)

    def loss(log_temperature: float) -> float:
        return float(np.logaddexp(0, -odds / np.exp(log_temperature)).mean())

    found = minimize_scalar(loss, bounds=np.log(_TEMPERATURES), method="bounded", options={"xatol": 1e-6})
    return round(float(np.exp(found.x)), 4)


def rescaled(positive: Floats, temperature: float) -> Floats:
    """The probabilities at a temperature; the answers stay."""
    scaled: Floats = 1 / (1 + np.exp(-_log_odds(positive) / temperature))
    return scaled.round(_DIGITS)


def _log_odds(positive: Floats) -> Floats:
    inside = positive.clip(_CERTAIN, 1 - _CERTAIN)
    odds: Floats = np.log(inside / (1 - inside))
    return odds
