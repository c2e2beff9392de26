"""Bootstrap intervals and tests: how a score, or the difference of two, depends on the choice of test items.

Efron and Tibshirani 1993; for machine translation Koehn 2004. The same number of items and samples always gives the
same resamples, so that two systems are compared on the same ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SEED = 12345
_LEVEL = 0.95
_DIGITS = 6
_ROUNDING = 2.5e-6
"""Two scores of six digits differ by up to 1e-6 more or less than the exact ones, and a difference is met twice."""


def resamples(items: int, samples: int) -> Iterator[Floats]:
    """Yield the multiplicity of each item, (N,), for each resample; the counts sum to N."""
    random = np.random.default_rng(_SEED)
    for _ in range(samples):
        yield np.bincount(random.integers(items, size=items), minlength=items).astype(np.float64)


def bootstrap(score: Callable[[Floats], float | Sequence[float]], items: int, samples: int) -> Floats:
    """Return the score or the K scores of every resample, (samples,) or (samples, K); NaN where undefined.

    score: maps the counts (N,) of the items to scores. Without items there are no resamples; with a single item they
    are all equal, and are left out.
    """
    return np.array([score(weights) for weights in resamples(items, samples)]) if items > 1 else np.empty(0)


def interval(scores: Floats) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of resampled scores, ignoring NaN; None without scores."""
    known = scores[~np.isnan(scores)]
    if not len(known):
        return None
    low, high = np.quantile(known, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    return float(low), float(high)


def p_value(observed: float, differences: Floats, differing: int) -> float | None:
    """Compute the two-sided p-value of a difference under the null hypothesis of none; None without resamples.

    differences: of the resamples, (samples,). Their distribution, shifted to be centred at 0, approximates the one
    under the null hypothesis (Efron and Tibshirani 1993, section 16.4; (b + 1) / (n + 1) as in Davison and Hinkley
    1997, eq. 4.11). differing: number of items on which the two systems differ. Few of them give little evidence,
    whatever the resamples: the sign test (Dixon and Mood 1946) has no smaller p-value than 2^(1 - differing),
    reached if all favour one system.
    """
    known = differences[~np.isnan(differences)]
    if not len(known):
        return None
    extreme = np.abs(known - observed) >= abs(observed) - _ROUNDING
    return max((int(extreme.sum()) + 1) / (len(known) + 1), min(1.0, 2.0 ** (1 - differing)))


def interval_figures(scores: Mapping[str, Floats]) -> dict[str, float]:
    """Return `NAME_low` and `NAME_high` for resampled scores by name."""
    metrics: dict[str, float] = {}
    for name, values in scores.items():
        if (ends := interval(values)) is not None:
            metrics |= {f"{name}_low": round(ends[0], _DIGITS), f"{name}_high": round(ends[1], _DIGITS)}
    return metrics


def comparison_figures(
    other: str,
    observed: Mapping[str, tuple[float, float]],
    resampled: Mapping[str, tuple[Floats, Floats]],
    differing: Mapping[str, int],
) -> dict[str, float]:
    """Compare the scores of two systems on the same items.

    observed, resampled: by metric, this system's and the other's; differing: by metric, as in `p_value`. Returns
    `OTHER_METRIC`, the other's score, and `METRIC_minus_OTHER` with `_low`, `_high` and `_p`.
    """
    metrics: dict[str, float] = {}
    for metric, (own, others) in observed.items():
        metrics[f"{other}_{metric}"] = round(others, _DIGITS)
        name, difference = f"{metric}_minus_{other}", own - others
        metrics[name] = round(difference, _DIGITS)
        differences = resampled[metric][0] - resampled[metric][1]
        metrics |= interval_figures({name: differences})
        if (p := p_value(difference, differences, differing[metric])) is not None:
            metrics[f"{name}_p"] = round(p, _DIGITS)
    return metrics
