"""The bootstrap, compared with closed forms and with scipy's."""

import numpy as np
import pytest
from scipy import stats

from transformer.evaluation.bootstrap import (
    Floats,
    bootstrap,
    comparison_figures,
    interval,
    interval_figures,
    p_value,
    resamples,
)


def means(values: Floats, samples: int) -> Floats:
    return bootstrap(lambda weights: float(weights @ values) / len(values), len(values), samples)


def test_every_resample_holds_as_many_items_and_the_draws_are_always_the_same() -> None:
    first, second = (np.array(list(resamples(7, 50))) for _ in range(2))
    assert (first.sum(axis=1) == 7).all()
    assert (first == second).all()
    assert len({tuple(row) for row in first}) > 40


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)
    found = interval(means(values, 4000))
    expected = stats.norm.interval(0.95, values.mean(), values.std() / np.sqrt(len(values)))
    assert found == pytest.approx(expected, abs=0.01)
    given = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=0).confidence_interval
    assert found == pytest.approx((given.low, given.high), abs=0.01)


def test_the_p_value_of_a_mean_is_that_of_the_z_test() -> None:
    noise = np.random.default_rng(1).normal(0.0, 1.0, 1000)
    error = noise.std() / np.sqrt(len(noise))
    for z in (0.0, 0.5, 1.0, 2.0):
        values = noise - noise.mean() + z * error
        found = p_value(float(values.mean()), means(values, 4000), 1000)
        assert found == pytest.approx(2 * stats.norm.sf(z), abs=0.03), z
    assert p_value(0.0, np.zeros(99), 0) == 1, "the same answers"
    assert p_value(5.0, means(np.full(50, 5.0), 199), 50) == pytest.approx(1 / 200), "the least"


def test_resamples_without_a_score_are_left_out() -> None:
    scores = np.array([np.nan, 1.0, 2.0, np.nan, 3.0])
    assert interval(scores) == interval(np.array([1.0, 2.0, 3.0]))
    assert p_value(1.0, scores, 9) == p_value(1.0, np.array([1.0, 2.0, 3.0]), 9)
    for none in (np.empty(0), np.array([np.nan])):
        assert interval(none) is None
        assert p_value(1.0, none, 9) is None
        assert interval_figures({"score": none}) == {}
    assert len(means(np.ones(1), 10)) == 0, "those of one item would all be the same: an interval without width"


@pytest.mark.parametrize(("ahead", "texts"), [(1, 2), (3, 3), (3, 5), (4, 8), (4, 10), (5, 1000)])
def test_few_texts_that_differ_are_no_more_significant_than_by_the_sign_test(ahead: int, texts: int) -> None:
    lead = np.array([1.0] * ahead + [0.0] * (texts - ahead))
    found = p_value(float(lead.mean()), means(lead, 1000), ahead)
    expected = stats.binomtest(ahead, ahead).pvalue
    assert found is not None and found >= expected > 0.05


@pytest.mark.parametrize(("texts", "ours", "theirs"), [(711, 6, 16), (251, 4, 12), (872, 30, 41), (1000, 30, 41)])
def test_rounded_scores_have_the_p_value_of_the_exact_ones(texts: int, ours: int, theirs: int) -> None:
    """A resample whose difference is just twice the observed one counts, though six digits are not exact."""
    first, second = np.arange(texts) >= ours, np.arange(texts) < texts - theirs
    differences = means(first.astype(float) - second, 1000)
    exact = (theirs - ours) / texts
    rounded = round((texts - ours) / texts, 6) - round((texts - theirs) / texts, 6)
    assert p_value(rounded, differences, 100) == p_value(exact, differences, 100)


def test_a_comparison_subtracts_on_the_same_resamples() -> None:
    values = np.random.default_rng(3).normal(0.0, 1.0, 200)
    better = values + 0.25
    figures = comparison_figures(
        "other",
        {"score": (float(better.mean()), float(values.mean()))},
        {"score": (means(better, 200), means(values, 200))},
        {"score": 200},
    )
    assert figures["other_score"] == pytest.approx(values.mean(), abs=1e-6)
    # On different resamples, each mean would vary by 0.07; on the same ones, their difference does not vary at all.
    for name in ("", "_low", "_high"):
        assert figures[f"score_minus_other{name}"] == 0.25
    assert figures["score_minus_other_p"] == pytest.approx(1 / 201, abs=1e-6)
