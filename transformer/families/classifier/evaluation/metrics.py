"""All figures of one split of a binary classifier."""

from collections.abc import Mapping

from transformer.evaluation.bootstrap import Floats, comparison_figures, interval_figures
from transformer.evaluation.leakage import Duplicates
from transformer.families.classifier.evaluation.calibration import expected_calibration_error, rescaled
from transformer.families.classifier.evaluation.scores import Labels, resampled_scores, scores


def split_figures(
    labels: Labels,
    positive: Floats,
    *,
    temperature: float,
    duplicates: Duplicates,
    others: Mapping[str, Floats],
    samples: int,
) -> dict[str, float]:
    """Scores, their intervals, what changes with a temperature and without duplicates, and the lead over others.

    labels: (N,) of 0 and 1; positive: (N,) probabilities of 1; others: those of other systems, by name.
    """
    return (
        scores(labels, positive)
        | {"reviews": len(labels)}
        | _calibration_figures(labels, positive, temperature)
        | _figures_without(duplicates, labels, positive)
        | _comparisons(labels, positive, others, samples)
    )


def _calibration_figures(labels: Labels, positive: Floats, temperature: float) -> dict[str, float]:
    scaled = rescaled(positive, temperature)
    after = scores(labels, scaled) | {"ece": expected_calibration_error(labels, scaled)}
    changed = {f"{name}_with_temperature": after[name] for name in ("loss", "brier", "ece")}
    return {"ece": expected_calibration_error(labels, positive), "temperature": temperature} | changed


def _figures_without(duplicates: Duplicates, labels: Labels, positive: Floats) -> dict[str, float]:
    figures: dict[str, float] = duplicates.figures()
    if not duplicates.any.all():
        rest = scores(labels[~duplicates.any], positive[~duplicates.any])
        names = [name for name in ("accuracy", "f1", "roc_auc") if name in rest]
        figures |= {f"{name}_without_duplicates": rest[name] for name in names}
    return figures


def _comparisons(labels: Labels, positive: Floats, others: Mapping[str, Floats], samples: int) -> dict[str, float]:
    own, own_resampled = scores(labels, positive), resampled_scores(labels, positive, samples)
    figures = interval_figures(own_resampled)
    for name, probabilities in others.items():
        their, their_resampled = scores(labels, probabilities), resampled_scores(labels, probabilities, samples)
        metrics = [metric for metric in own_resampled if metric in own]
        figures |= comparison_figures(
            name,
            {metric: (own[metric], their[metric]) for metric in metrics},
            {metric: (own_resampled[metric], their_resampled[metric]) for metric in metrics},
        )
    return figures
