"""A classifier's metrics, of two classes and of more, compared with scikit-learn, scipy and closed forms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from tests.builders import NGRAMS
from transformer.core.errors import UserError
from transformer.data.leakage import Duplicates
from transformer.evaluation.bootstrap import Floats, resamples
from transformer.families.classifier.classifier import probabilities_of
from transformer.families.classifier.evaluate import _probabilities
from transformer.families.classifier.interface import ClassifierConfig
from transformer.families.classifier.metrics import (
    expected_calibration_error,
    fitted_temperature,
    linear_baseline,
    reliability,
    rescaled,
    split_figures,
)
from transformer.families.classifier.ngram_training import log_count_ratio
from transformer.families.classifier.ngrams import Ids
from transformer.families.classifier.scores import (
    Labels,
    accuracy_by_length,
    answers,
    confident_errors,
    confusion,
    precision_recall,
    resampled_scores,
    roc,
    scores,
)

LABELS = np.array([0, 1, 2, 2], dtype=np.int8)
GIVEN = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.3, 0.2], [0.0, 0.1, 0.9]])
"""Of three classes: right, right, wrong, right."""


def sampled(count: int, temperature: float = 1.0) -> tuple[Labels, Floats]:
    """Labels drawn from probabilities, and those of an overconfident model, whose logits are multiplied by T."""
    draw = np.random.default_rng(0)
    logits = draw.normal(0, 2, count)
    labels = (draw.random(count) < expit(logits)).astype(np.int8)
    return labels, expit(logits * temperature).round(6)


def sampled_of_three(count: int, temperature: float = 1.0) -> tuple[Labels, Floats]:
    draw = np.random.default_rng(1)
    logits = draw.normal(0, 2, (count, 3))
    labels = np.array([draw.choice(3, p=row) for row in softmax(logits, axis=1)], dtype=np.int8)
    return labels, softmax(logits * temperature, axis=1).round(6)


def figures_of(labels: Labels, given: Floats, match: Ids | None = None, **changes: Any) -> dict[str, float]:
    """The metrics of a split, in which text i equals text `match[i]` of train unless that is -1."""
    match = np.full(len(labels), -1) if match is None else match
    duplicates = Duplicates(match >= 0, np.zeros(len(labels)), match)
    settings: dict[str, Any] = {"temperature": 1.0, "commonest": 1, "units": "reviews", "others": {}, "samples": 50}
    return split_figures(labels, given, duplicates=duplicates, **settings | changes)


def test_resampled_scores_are_scikit_learns_of_the_drawn_texts() -> None:
    labels, positive = sampled(60)
    positive = positive.round(1)  # ties
    classes, given = sampled_of_three(60)
    found, many = resampled_scores(labels, positive, 20), resampled_scores(classes, given, 20)
    assert many.keys() == {"accuracy", "macro_f1"}
    for number, weights in enumerate(resamples(60, 20)):
        rows = np.repeat(np.arange(60), weights.astype(int))
        own, answered = labels[rows], positive[rows] >= 0.5
        assert found["accuracy"][number] == pytest.approx(accuracy_score(own, answered))
        assert found["f1"][number] == pytest.approx(f1_score(own, answered))
        assert found["roc_auc"][number] == pytest.approx(roc_auc_score(own, positive[rows]))
        expected = f1_score(classes[rows], answers(given)[rows], labels=range(3), average="macro")
        assert many["macro_f1"][number] == pytest.approx(expected)
        assert scores(classes[rows], given[rows])["macro_f1"] == pytest.approx(expected, abs=1e-6)


def test_a_class_that_a_resample_lacks_counts_nothing_against_the_answers() -> None:
    """Right answers alone have the same score in every resample; of 21 classes, one occurs nowhere."""
    for texts in (1, 5):
        labels = np.repeat(np.arange(20, dtype=np.int8), texts)
        assert scores(labels, np.eye(21)[labels])["macro_f1"] == 1
        np.testing.assert_allclose(resampled_scores(labels, np.eye(21)[labels], 300)["macro_f1"], 1)


@pytest.mark.parametrize(
    ("count", "temperature", "digits"), [(300, 1.0, 0), (300, 1.0, 2), (300, 9.0, 6), (9000, 1.0, 6)]
)
def test_the_drawn_curve_has_the_area_that_is_told(count: int, temperature: float, digits: int) -> None:
    """Also where few probabilities differ: a curve of three points has its knee between the ends."""
    labels, positive = sampled(count, temperature)
    positive = positive.round(digits)
    x, y = zip(*roc(labels, positive), strict=True)
    assert np.trapezoid(y, x) == pytest.approx(roc_auc_score(labels, positive), abs=1e-3)
    assert len(x) <= 200 and (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    recall, precision = zip(*precision_recall(labels, positive), strict=True)
    assert list(recall) == sorted(recall) and (recall[0], precision[0], recall[-1]) == (0, 1, 1)


def test_one_class_and_many_have_no_area() -> None:
    labels, positive = np.ones(5, dtype=np.int8), np.full(5, 0.75)
    assert "roc_auc" not in scores(labels, positive)
    assert np.isnan(resampled_scores(labels, positive, 3)["roc_auc"]).all()
    for of in ((labels, positive), (LABELS, GIVEN)):
        assert roc(*of) == precision_recall(*of) == []


def test_scores_by_hand() -> None:
    figures = scores(np.array([1, 0, 1, 0], dtype=np.int8), np.array([0.9, 0.6, 0.4, 0.1]))
    assert figures["brier"] == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    # Ranked: 1 0 1 0. Precision 1 at recall 1/2, 2/3 at recall 1.
    assert figures["pr_auc"] == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3, abs=1e-6)
    assert figures["roc_auc"] == 3 / 4
    many = scores(LABELS, GIVEN)
    assert many.keys() == {"accuracy", "balanced_accuracy", "macro_f1", "loss", "brier"}
    assert many["accuracy"] == 0.75
    assert many["balanced_accuracy"] == pytest.approx((1 + 1 + 1 / 2) / 3, abs=1e-6)
    assert many["macro_f1"] == pytest.approx((2 / 3 + 1 + 2 / 3) / 3, abs=1e-6)
    assert many["loss"] == pytest.approx(-np.log([0.7, 0.8, 0.2, 0.9]).mean(), abs=1e-6)
    brier = [0.09 + 0.04 + 0.01, 0.01 + 0.04 + 0.01, 0.25 + 0.09 + 0.64, 0.01 + 0.01]
    assert many["brier"] == pytest.approx(np.mean(brier), abs=1e-6)


def test_a_wrong_answer_that_was_rounded_to_certainty_costs_what_its_last_digit_allows() -> None:
    """Written with six digits, 1 - 4e-7 is 1: the text's loss is 14.7, and not that of a wrong certainty."""
    labels = np.array([0, 1], dtype=np.int8)
    for given in (np.array([1.0, 1.0]), np.array([[0.0, 1.0, 0.0]] * 2)):
        assert scores(labels, given)["loss"] == pytest.approx(-np.log(5e-7) / 2, abs=1e-5)


def test_a_baseline_gives_the_probability_of_its_own_prediction() -> None:
    """P(positive) in every row would turn each negative answer round."""

    def read(name: str, probability: str, classes: tuple[str, ...] = ("negative", "positive")) -> Any:
        return _probabilities({"prediction": name, "probability": probability}, classes, "x")

    assert read("negative", "0.98") == pytest.approx(0.02)
    for wrong in ("0.02", "93.0", "nan", "-1", "x"):
        with pytest.raises(UserError, match=rf"x: `negative` at `{wrong}` is not a prediction: .* from 0.5 to 1"):
            read("negative", wrong)
    assert read("b", "0.333333", ("a", "b", "c")) == pytest.approx([1 / 3] * 3, abs=2e-6)
    for classes, undecided in (("ab", "0.5"), ("abc", "0.333333"), ("abc", "0.34")):
        found = np.array([read(name, undecided, (*classes,)) for name in classes])
        assert scores(np.arange(len(classes), dtype=np.int8), found)["accuracy"] == 1, "the answer stays its own"


def test_reliability_is_scikit_learns_curve_and_of_many_classes_that_of_the_answer() -> None:
    labels, positive = sampled(500)
    found = reliability(labels, positive)
    share, mean = calibration_curve(labels, positive, n_bins=10)
    assert [row.positive for row in found] == pytest.approx(share, abs=1e-6)
    assert [row.probability for row in found] == pytest.approx(mean, abs=1e-6)
    assert sum(row.reviews for row in found) == 500
    many = [(row.probability, row.positive, row.reviews) for row in reliability(LABELS, GIVEN)]
    assert many == [(0.5, 0.0, 1), (0.7, 1.0, 1), (0.8, 1.0, 1), (0.9, 1.0, 1)]


def test_the_calibration_error_by_hand() -> None:
    # All in one bin: 0.95 predicted, 0.75 true.
    assert expected_calibration_error(np.array([1, 1, 1, 0], dtype=np.int8), np.full(4, 0.95)) == pytest.approx(0.2)
    # Two bins with one and three of the four texts, off by 1 and 1/3; the last bin includes 1.0.
    positive, labels = np.array([0.0, 1.0, 1.0, 1.0]), np.array([1, 1, 0, 1], dtype=np.int8)
    assert expected_calibration_error(labels, positive) == pytest.approx(1 / 4 * 1 + 3 / 4 * 1 / 3, abs=1e-6)
    assert expected_calibration_error(LABELS, GIVEN) == pytest.approx((0.5 + 0.3 + 0.2 + 0.1) / 4, abs=1e-6)


def test_the_temperature_that_was_put_in_is_found() -> None:
    for temperature in (0.5, 1.0, 3.0):
        labels, positive = sampled(20_000, temperature)
        assert fitted_temperature(labels, positive) == pytest.approx(temperature, rel=0.05)
    labels, sure = sampled_of_three(4000, 2.0)
    assert fitted_temperature(labels, sure) == pytest.approx(2, rel=0.1)
    _, honest = sampled_of_three(4000)
    assert np.abs(rescaled(sure, 2.0) - honest).max() < 2e-3  # values rounded to six digits are recovered
    assert fitted_temperature(np.empty(0, dtype=np.int8), np.empty(0)) == 1
    logits = np.array([-4.0, -0.2, 0.0, 1.0, 6.0])
    assert rescaled(expit(logits), 2.0) == pytest.approx(expit(logits / 2), abs=1e-6)


def test_accuracy_by_length_holds_every_text_once() -> None:
    labels = np.array([1, 1, 0, 0, 1, 1, 0, 0, 1, 1], dtype=np.int8)
    positive = np.where(np.arange(10) < 8, labels, 1 - labels).astype(float)  # the two longest are wrong
    rows = accuracy_by_length(labels, positive, [3, 4, 5, 6, 7, 8, 9, 10, 40, 50])
    assert rows == [("3-5", 3, 1.0), ("6-7", 2, 1.0), ("8-9", 2, 1.0), ("10-40", 2, 0.5), ("41-50", 1, 0.0)]
    assert accuracy_by_length(LABELS, GIVEN, [5, 5, 5, 5]) == [("5-5", 4, 0.75)]
    assert accuracy_by_length(labels[:0], positive[:0], []) == []


def test_confusions_and_the_surest_errors() -> None:
    rows = confusion(LABELS, GIVEN, ("a", "b", "c"))
    assert len(rows) == 9
    assert [row for row in rows if row[2]] == [("a", "a", 1), ("b", "b", 1), ("c", "a", 1), ("c", "c", 1)]
    worse = np.array([[0.1, 0.9, 0.0], [0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.0, 0.1, 0.9]])
    assert confident_errors(LABELS, worse, 9) == [0, 2, 1]
    assert confident_errors(np.array([1, 0, 1, 0], dtype=np.int8), np.array([0.4, 0.99, 0.9, 0.5]), 2) == [1, 0]


@pytest.mark.parametrize(("right", "low", "high"), [(1.0, 0.478176, 1), (0.0, 0, 0.521824)])
def test_answers_all_right_or_all_wrong_still_have_an_interval(right: float, low: float, high: float) -> None:
    """With 5 of 5 right, shares from 0.478 on are not ruled out: 0.478 to the power of 5 is 0.025."""
    labels = np.array([0, 1, 1, 0, 1], dtype=np.int8)
    figures = figures_of(labels, np.where((labels == 1) == bool(right), 0.9, 0.1))
    assert figures["accuracy"] == right
    assert (figures["accuracy_low"], figures["accuracy_high"]) == pytest.approx((low, high), abs=2e-6)


def test_a_comparison_is_with_the_other_system_and_leaves_out_duplicates() -> None:
    labels, positive = sampled(400)
    match = np.where(np.arange(400) < 100, 7, -1)
    others = {"linear": 1 - positive, "baseline": positive}
    figures = figures_of(labels, positive, match, temperature=2.0, others=others, samples=100)
    assert figures["accuracy_without_duplicates"] == scores(labels[100:], positive[100:])["accuracy"]
    assert figures["linear_accuracy"] == pytest.approx(1 - figures["accuracy"], abs=0.01)
    assert figures["accuracy_minus_linear"] == pytest.approx(2 * figures["accuracy"] - 1, abs=0.01)
    assert figures["accuracy_minus_linear_p"] < 0.02
    assert figures["accuracy_minus_baseline"] == figures["accuracy_minus_baseline_high"] == 0
    assert figures["accuracy_minus_baseline_p"] == 1
    assert figures["accuracy_low"] < figures["accuracy"] < figures["accuracy_high"]
    assert figures["brier_with_temperature"] == scores(labels, rescaled(positive, 2.0))["brier"]
    every = figures_of(labels, positive, np.zeros(400, dtype=np.int64), samples=0)
    assert every["majority_accuracy"] == pytest.approx(labels.mean(), abs=1e-6)
    assert every["duplicates"] == 400 and not any("without" in name for name in every)


def test_the_ratio_of_naive_bayes_by_hand() -> None:
    matrix = csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]]))
    p, q = np.array([3, 2, 1]) / 6, np.array([1, 2, 2]) / 5
    assert log_count_ratio(matrix, np.array([1, 1, 0], dtype=np.int8)) == pytest.approx(np.log(p / q))


def reviews(count: int, seed: int) -> tuple[list[Ids], Labels]:
    """Only the order of 5 and 6 determines the label; 2 and 3 stand for begin and end."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(2, size=count).astype(np.int8)
    texts = [[*draw.integers(7, 12, 3), *((5, 6) if label else (6, 5)), *draw.integers(7, 12, 3)] for label in labels]
    return [np.array([2, *text, 3], dtype=np.int64) for text in texts], labels


def baseline(texts: list[Ids], labels: Labels, longest: int = 2) -> Callable[[list[Ids]], Floats]:
    """The baseline's probabilities of class 1."""
    model = linear_baseline(ClassifierConfig(model=NGRAMS, size=50, pad_id=0, classes=2), texts, labels, longest)
    return lambda given: probabilities_of(model.logits(given))


def test_the_linear_baseline_learns_from_pairs_of_words() -> None:
    texts, labels = reviews(200, 0)
    others, expected = reviews(100, 1)
    positive = baseline(texts, labels)
    assert ((positive(others) >= 0.5) == expected).all()
    alone = [np.array([2, *sorted(text[1:-1]), 3]) for text in others]  # the same words, without their order
    assert 0.3 < ((positive(alone) >= 0.5) == expected).mean() < 0.7
    assert np.isfinite(positive([np.array([2, 3]), np.array([2, 4, 3])])).all()
    unanimous = baseline(texts[:4], np.ones(4, dtype=np.int8))
    assert unanimous(others[:2]) == pytest.approx([5 / 6] * 2, abs=1e-6), "nothing to learn but the smoothed share"
    empty = baseline([np.array([2, 3])] * 4, labels[:4])
    assert empty(others[:2]) == pytest.approx([(labels[:4].sum() + 1) / 6] * 2, abs=1e-6)


def test_the_linear_baseline_learns_from_longer_ngrams() -> None:
    """Both kinds of text have the same words and pairs; only the order of the two detours from 5 differs."""
    labels = np.random.default_rng(3).integers(2, size=300).astype(np.int8)
    texts = [np.array([2, *((5, 6, 5, 7, 5) if label else (5, 7, 5, 6, 5)), 3]) for label in labels]
    right = {n: ((baseline(texts, labels, n)(texts) >= 0.5) == labels).mean() for n in (2, 3)}
    assert right[2] < 0.7 and right[3] == 1.0
