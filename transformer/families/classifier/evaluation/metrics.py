"""All metrics of a classifier on one split."""

from collections.abc import Mapping

from transformer.corpora.leakage import Duplicates
from transformer.evaluation.bootstrap import Floats, comparison_figures, interval_figures
from transformer.families.classifier.evaluation.calibration import expected_calibration_error, rescaled
from transformer.families.classifier.evaluation.scores import Labels, differing, resampled_scores, scores


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
