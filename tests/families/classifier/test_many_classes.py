"""Metrics of more than two classes."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from tests.builders import NGRAMS
from tests.families.classifier.test_metrics import figures_of
from transformer.families.classifier.classifier import prediction, probabilities_of
from transformer.families.classifier.interface import ClassifierConfig
from transformer.families.classifier.metrics import (
    expected_calibration_error,
    fitted_temperature,
    linear_baseline,
    reliability,
    rescaled,
)
from transformer.families.classifier.scores import (
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
"""Right, right, wrong, right."""


def drawn(count: int, temperature: float = 1.0) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Labels drawn from a softmax of random logits, and predictions from these logits divided by `temperature`."""
    random = np.random.default_rng(1)
    logits = 2 * random.standard_normal((count, 3))

    def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.exp(values)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    labels = np.array([random.choice(3, p=row) for row in softmax(logits)], dtype=np.int8)
    return labels, softmax(logits / temperature).round(6)


def test_scores_by_hand() -> None:
    found = scores(LABELS, GIVEN)
    assert set(found) == {"accuracy", "balanced_accuracy", "macro_f1", "loss", "brier"}
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx((1 + 1 + 1 / 2) / 3, abs=1e-6)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 + 2 / 3) / 3, abs=1e-6)
    assert found["loss"] == pytest.approx(-np.log([0.7, 0.8, 0.2, 0.9]).mean(), abs=1e-6)
    brier = [0.09 + 0.04 + 0.01, 0.01 + 0.04 + 0.01, 0.25 + 0.09 + 0.64, 0.01 + 0.01]
    assert found["brier"] == pytest.approx(np.mean(brier), abs=1e-6)


def test_macro_f1_is_of_the_classes_that_occur() -> None:
    labels = np.array([0, 1, 1], dtype=np.int8)
    assert scores(labels, np.eye(3)[labels])["macro_f1"] == 1
    assert scores(labels, np.eye(3)[[0, 1, 2]])["macro_f1"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-6)


def test_resamples_are_around_the_score_and_of_its_kind() -> None:
    labels, given = drawn(300)
    found, own = resampled_scores(labels, given, 200), scores(labels, given)
    assert set(found) == {"accuracy", "macro_f1"}
    for name, values in found.items():
        assert abs(values.mean() - own[name]) < 0.02
        assert 0.005 < values.std() < 0.05
    weights = np.random.default_rng(2).integers(0, 3, size=300)
    repeated = np.repeat(np.arange(300), weights)
    expected = f1_score(labels[repeated], answers(given)[repeated], labels=range(3), average="macro")
    assert scores(labels[repeated], given[repeated])["macro_f1"] == pytest.approx(expected, abs=1e-6)


def test_a_class_that_a_resample_lacks_counts_nothing_against_the_answers() -> None:
    """Right answers alone have the same score in every resample; of 21 classes, one occurs nowhere."""
    for texts in (1, 5):
        labels = np.repeat(np.arange(20, dtype=np.int8), texts)
        assert scores(labels, np.eye(21)[labels])["macro_f1"] == 1
        np.testing.assert_allclose(resampled_scores(labels, np.eye(21)[labels], 300)["macro_f1"], 1)


def test_confusion_errors_and_lengths() -> None:
    rows = confusion(LABELS, GIVEN, ("a", "b", "c"))
    assert len(rows) == 9
    assert [row for row in rows if row[2]] == [("a", "a", 1), ("b", "b", 1), ("c", "a", 1), ("c", "c", 1)]
    worse = np.array([[0.1, 0.9, 0.0], [0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.0, 0.1, 0.9]])
    assert confident_errors(LABELS, worse, 9) == [0, 2, 1]
    assert accuracy_by_length(LABELS, GIVEN, [5, 5, 5, 5]) == [("5-5", 4, 0.75)]
    assert roc(LABELS, GIVEN) == precision_recall(LABELS, GIVEN) == []


def test_calibration_is_of_the_answer() -> None:
    found = [(row.probability, row.positive, row.reviews) for row in reliability(LABELS, GIVEN)]
    assert found == [(0.5, 0.0, 1), (0.7, 1.0, 1), (0.8, 1.0, 1), (0.9, 1.0, 1)]
    assert expected_calibration_error(LABELS, GIVEN) == pytest.approx((0.5 + 0.3 + 0.2 + 0.1) / 4, abs=1e-6)


def test_the_temperature_that_was_taken_out_is_found_again() -> None:
    labels, sure = drawn(4000, temperature=0.5)
    assert fitted_temperature(labels, sure) == pytest.approx(2, rel=0.1)
    _, honest = drawn(4000)
    assert np.abs(rescaled(sure, 2.0) - honest).max() < 2e-3  # values rounded to six digits are recovered
    assert expected_calibration_error(labels, rescaled(sure, 2.0)) < expected_calibration_error(labels, sure) / 3


def test_all_metrics_of_a_split() -> None:
    labels, given = drawn(200)
    found = figures_of(labels, given, commonest=0, units="headlines", others={"linear": np.full((200, 3), 1 / 3)})
    assert found["headlines"] == 200
    assert found["accuracy_low"] <= found["accuracy"] <= found["accuracy_high"]
    assert found["macro_f1_minus_linear"] == pytest.approx(found["macro_f1"] - found["linear_macro_f1"], abs=1e-6)
    assert found["macro_f1_without_duplicates"] == found["macro_f1"]


def test_the_linear_baseline_tells_any_number_of_classes_apart() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(0, 4, size=200).astype(np.int8)
    texts = [np.array([2, *random.integers(10 * label + 4, 10 * label + 14, size=6), 3]) for label in labels]
    config = ClassifierConfig(model=NGRAMS, size=50, pad_id=0, classes=4)
    found = probabilities_of(linear_baseline(config, iter(texts), labels).logits(iter(texts)))
    assert found.shape == (200, 4)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found.argmax(axis=1) == labels).mean() > 0.95


def test_a_prediction_is_the_most_probable_class() -> None:
    assert prediction(GIVEN[2], ("a", "b", "c")) == ("a", 0.5)
    assert prediction(0.25, ("negative", "positive")) == ("negative", 0.75)
    assert prediction(0.5, ("negative", "positive")) == ("positive", 0.5)
