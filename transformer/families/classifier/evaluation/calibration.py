"""Calibration: for example, whether four in five of the texts with a probability of 0.8 are positive.

`labels` and `probabilities` are as in scores.py. With more than two classes, "positive" means that the most probable
class is correct (top-label calibration).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from transformer.evaluation.bootstrap import Floats
from transformer.families.classifier.evaluation.scores import CERTAIN, Labels

_BINS = 10
_TEMPERATURES = (0.05, 20.0)
_DIGITS = 6


class Bin(NamedTuple):
    """Texts of similar probability: a point of the reliability diagram (Niculescu-Mizil and Caruana 2005)."""

    probability: float
    """Mean probability of the bin."""
    positive: float
    """Fraction of positive texts in the bin."""
    calibrated: float
    """Value of `positive` under perfect calibration."""
    reviews: int


def reliability(labels: Labels, probabilities: Floats) -> list[Bin]:
    """Return ten equal-width probability bins, without empty ones."""
    labels, positive = _claims(labels, probabilities)
    bins = np.minimum((positive * _BINS).astype(int), _BINS - 1)
    rows = []
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            mean, share = (round(float(values[inside].mean()), _DIGITS) for values in (positive, labels))
            rows.append(Bin(mean, share, mean, int(inside.sum())))
    return rows


def _claims(labels: Labels, probabilities: Floats) -> tuple[Labels, Floats]:
    """Return whether each claim is correct, (N,) of 0 and 1, and its probability, (N,)."""
    if probabilities.ndim == 1:
        return labels, probabilities
    return (probabilities.argmax(axis=1) == labels).astype(np.int8), probabilities.max(axis=1)


def expected_calibration_error(labels: Labels, probabilities: Floats) -> float:
    """Return the mean of |`probability` - `positive`| over bins, weighted by size (ECE, Naeini et al. 2015)."""
    rows = reliability(labels, probabilities)
    return round(sum(abs(row.probability - row.positive) * row.reviews for row in rows) / max(len(labels), 1), _DIGITS)


def fitted_temperature(labels: Labels, probabilities: Floats) -> float:
    """Fit the T that minimises the cross-entropy of softmax(logits / T) (Guo et al. 2017, section 4.2).

    Returns 1 without texts. Fit it on validation. Above 1, the model is overconfident. Searched from 0.05 to 20.
    """
    if not len(labels):
        return 1.0
    if probabilities.ndim == 1:
        odds = _log_odds(probabilities) * np.where(labels == 1, 1, -1)
    else:
        logits = _log(probabilities)
        behind = logits - logits[np.arange(len(labels)), labels][:, None]

    def loss(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        if probabilities.ndim == 1:
            return float(np.logaddexp(0, -odds / temperature).mean())
        return float(logsumexp(behind / temperature, axis=1).mean())

    found = minimize_scalar(loss, bounds=np.log(_TEMPERATURES), method="bounded", options={"xatol": 1e-6})
    return round(float(np.exp(found.x)), 4)


def rescaled(probabilities: Floats, temperature: float) -> Floats:
    """Rescale probabilities by a temperature, which does not change the predicted classes."""
    if probabilities.ndim == 2:
        shares: Floats = softmax(_log(probabilities) / temperature, axis=1)
        return shares.round(_DIGITS)
    scaled: Floats = 1 / (1 + np.exp(-_log_odds(probabilities) / temperature))
    return scaled.round(_DIGITS)


def _log(probabilities: Floats) -> Floats:
    logs: Floats = np.log(probabilities.clip(CERTAIN))
    return logs


def _log_odds(positive: Floats) -> Floats:
    inside = positive.clip(CERTAIN, 1 - CERTAIN)
    odds: Floats = np.log(inside / (1 - inside))
    return odds
