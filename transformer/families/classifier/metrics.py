"""All metrics of a classifier on one split."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from transformer.data.leakage import Duplicates
from transformer.evaluation.bootstrap import Floats, comparison_figures, interval_figures
from transformer.families.classifier.interface import ClassifierConfig, NgramParams
from transformer.families.classifier.ngram_training import fit_ngrams
from transformer.families.classifier.ngrams import Ids, NgramModel
from transformer.families.classifier.scores import CERTAIN, Labels, differing, resampled_scores, scores


def split_figures(
    labels: Labels,
    probabilities: Floats,
    *,
    temperature: float,
    duplicates: Duplicates,
    commonest: int,
    units: str,
    others: Mapping[str, Floats],
    samples: int,
) -> dict[str, float]:
    """Compute scores with intervals, calibration, scores without duplicates, and differences to other systems.

    labels, probabilities: as in scores.py; commonest: the most frequent class in train; units: what texts are called;
    others: other systems' probabilities.
    """
    return (
        scores(labels, probabilities)
        | {units: len(labels), "majority_accuracy": round(float((labels == commonest).mean()), 6)}
        | _calibration_figures(labels, probabilities, temperature)
        | _figures_without(duplicates, labels, probabilities)
        | _comparisons(labels, probabilities, others, samples)
    )


def _calibration_figures(labels: Labels, probabilities: Floats, temperature: float) -> dict[str, float]:
    scaled = rescaled(probabilities, temperature)
    after = scores(labels, scaled) | {"ece": expected_calibration_error(labels, scaled)}
    changed = {f"{name}_with_temperature": after[name] for name in ("loss", "brier", "ece")}
    return {"ece": expected_calibration_error(labels, probabilities), "temperature": temperature} | changed


def _figures_without(duplicates: Duplicates, labels: Labels, probabilities: Floats) -> dict[str, float]:
    figures: dict[str, float] = duplicates.figures()
    if not duplicates.any.all():
        rest = scores(labels[~duplicates.any], probabilities[~duplicates.any])
        names = [name for name in ("accuracy", "balanced_accuracy", "f1", "macro_f1", "roc_auc") if name in rest]
        figures |= {f"{name}_without_duplicates": rest[name] for name in names}
    return figures


def _comparisons(labels: Labels, probabilities: Floats, others: Mapping[str, Floats], samples: int) -> dict[str, float]:
    own, own_resampled = scores(labels, probabilities), resampled_scores(labels, probabilities, samples)
    figures = interval_figures(own_resampled) | _exact_ends(own["accuracy"], len(labels), samples)
    for name, given in others.items():
        their, their_resampled = scores(labels, given), resampled_scores(labels, given, samples)
        metrics = [metric for metric in own_resampled if metric in own]
        figures |= comparison_figures(
            name,
            {metric: (own[metric], their[metric]) for metric in metrics},
            {metric: (own_resampled[metric], their_resampled[metric]) for metric in metrics},
            {metric: differing(metric, probabilities, given) for metric in metrics},
        )
    return figures


def _exact_ends(accuracy: float, items: int, samples: int) -> dict[str, float]:
    """Return the exact 95 % interval of an accuracy of 0 or 1, where all resamples agree (Clopper and Pearson 1934)."""
    if not samples or 0 < accuracy < 1:
        return {}
    share = 0.025 ** (1 / items)
    low, high = (share, 1.0) if accuracy else (0.0, 1 - share)
    return {"accuracy_low": round(low, 6), "accuracy_high": round(high, 6)}


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


_STRENGTH = 1.0  # on IMDB's validation split, 0.3 to 16 differ by 0.1 points
_ALL = 2**31


def linear_baseline(config: ClassifierConfig, texts: Iterable[Ids], labels: Labels, longest: int = 2) -> NgramModel:
    """Fit the baseline. config: of the evaluated model; texts, labels: of train; longest: maximum n of the n-grams."""
    params = NgramParams(
        kind="ngrams",
        ngrams=longest,
        features=_ALL,
        strength=_STRENGTH,
        vectors=0,
        vector_ngrams=1,
        vector_strength=_STRENGTH,
    )
    return fit_ngrams(config.model_copy(update={"model": params}), texts, labels).model
