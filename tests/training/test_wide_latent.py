"""The latent directions of the wide branch: found without labels, folded into weights of n-grams, read again."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.builders import TRAIN
from tests.stages import Stages
from tests.training.test_wide import ON, SIZE, WIDE_TRAIN, texts_in
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.encoded.store import read_labels
from transformer.families.classifier.data.latent import directions_of, latent_margins
from transformer.families.classifier.data.naive_bayes import folds_of_blocks, margins, occurrence_matrix
from transformer.families.classifier.data.wide import FittedWide, fit_wide, shares
from transformer.families.classifier.nn.config import WideParams
from transformer.families.classifier.nn.ngrams import Occurrences
from transformer.families.classifier.nn.weights import ClassifierTrainParams
from transformer.families.classifier.nn.wide import WIDE, Latent, WideBranch, lead_of, read_wide


def drawn(texts: int = 60, features: int = 25) -> csr_array:
    found = np.random.default_rng(3).random((texts, features)) < np.linspace(0.05, 0.6, features)
    found[0] = False
    return csr_array(found.astype(np.float64))


def test_the_directions_are_those_of_the_whole_decomposition() -> None:
    """Against NumPy's exact one of the dense matrix: up to its sign, each coordinate is the same."""
    matrix = drawn()
    dense = matrix.toarray()
    counts = dense.sum(axis=0)
    weighted = dense * np.log(len(dense) / counts)
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    left, _, _ = np.linalg.svd(weighted / np.where(lengths, lengths, 1), full_matrices=False)
    found = directions_of([matrix[:20], matrix[20:]], 4, seed=1).coordinates(matrix)
    expected = left[:, :4] * np.sqrt(len(dense))
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-4)
    assert (found**2).mean(axis=0) == pytest.approx(np.ones(4), abs=1e-4)
    assert not found[0].any(), "a text without n-grams"


def test_ngrams_that_nearly_no_text_has_do_not_count_and_no_more_directions_than_there_are() -> None:
    matrix = drawn(features=6)
    lonely = csr_array(np.eye(60, 1))
    both = csr_array(np.hstack([matrix.toarray(), lonely.toarray(), np.ones((60, 1))]))
    found = directions_of([both], 500, seed=1)
    assert found.places.tolist() == [0, 1, 2, 3, 4, 5], "the others: in one text, and in all"
    assert found.projection.shape == (6, 6)
    nothing = directions_of([lonely], 5, seed=1)
    assert nothing.coordinates(lonely).shape == (60, 0)
    assert not nothing.ngram_weights(np.zeros((0, 2))).any()


def test_the_weights_of_ngrams_are_the_regression_along_the_directions() -> None:
    matrix = drawn()
    labels = (np.arange(60) % 3).astype(np.int8)
    directions = directions_of([matrix], 5, seed=1)
    slopes, bias = latent_margins(directions.coordinates(matrix), labels, 3, 0.1)
    expected = directions.coordinates(matrix) @ slopes + bias
    lengths = np.sqrt(matrix @ directions.norms() ** 2)
    found = (matrix @ directions.ngram_weights(slopes)) / np.where(lengths, lengths, 1)[:, None] + bias
    assert found == pytest.approx(expected, abs=1e-5)


def test_shares_give_weight_to_who_knows() -> None:
    """A well-calibrated model's logits stay, an overconfident one's shrink, noise and wrong answers weigh nothing."""
    generator = np.random.default_rng(0)
    lead = generator.normal(size=20_000) * 2
    labels = (generator.random(20_000) < 1 / (1 + np.exp(-lead))).astype(np.int8)
    good = np.stack([-lead, lead], axis=1) / 2
    assert shares((good, generator.normal(size=good.shape)), labels) == pytest.approx([1, 0], abs=0.05)
    assert shares((4 * good,), labels) == pytest.approx([0.25], abs=0.02)
    easy = np.stack([labels == 0, labels == 1], axis=1) * 1.0
    assert shares((easy, easy / 2), labels).max() == 1, "and not without end"
    assert shares((-good, generator.normal(size=good.shape)), labels)[0] == 0, "never turned round"


def fitted(tmp_path: Path, *, latent: int, unlabelled: bool, labels: list[int] | None = None) -> FittedWide:
    """20 is in two texts of either label; among the texts without one it is beside 11, which is for label 1."""
    given = [row // 5 % 2 for row in range(80)] if labels is None else labels
    texts = [[9, 10 + label, 13 + row % 4, *([20] if row in (0, 5, 40, 45) else [])] for row, label in enumerate(given)]
    train = texts_in(tmp_path / "train", texts, given, classes=max(given) + 1)
    more = [[11, 20, 13 + row % 4, 25] if row % 2 else [10, 13 + row % 4] for row in range(120)]
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_latent_strength": 1.0})
    model = WideParams(wide_ngrams=1, wide_latent=latent)
    others = texts_in(tmp_path / "more", more, [-1] * 120) if unlabelled else None
    return fit_wide(train, train, model, params, Observer(), others)


def test_the_held_out_logits_are_those_of_the_shares(tmp_path: Path) -> None:
    """A fifth of the labels are wrong; no factor of the sum lowers its loss, so the network trains beside good odds."""
    generator = np.random.default_rng(0)
    said = generator.integers(0, 2, 200)
    labels = np.where(generator.random(200) < 0.2, 1 - said, said)
    texts = [[9, 10 + word, *generator.integers(12, 20, 3)] for word in said]
    train = texts_in(tmp_path, texts, labels.tolist())
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_latent_strength": 1.0})
    found = fit_wide(train, train, WideParams(wide_ngrams=1, wide_latent=3), params, Observer())
    assert shares((found.train.numpy().astype(np.float64),), labels) == pytest.approx([1], abs=1e-2)


def test_branch_and_held_out_logits_mix_the_regressions_alike(tmp_path: Path) -> None:
    labels = [row // 5 % 2 for row in range(80)]
    train = texts_in(
        tmp_path, [[9, 10 + label, 13 + row % 4, 17 + row % 3] for row, label in enumerate(labels)], labels
    )
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_strength": 0.01, "wide_latent_strength": 1.0})
    found = fit_wide(train, train, WideParams(wide_ngrams=2, wide_latent=3), params, Observer())
    assert found.branch.latent is not None
    occurring = Occurrences.of(train.whole(), SIZE, 2)
    matrix, given = occurrence_matrix(occurring, found.branch.keys), np.array(labels, dtype=np.int8)
    coordinates = directions_of([matrix], 3, params.seed).coordinates(matrix)
    folds = list(folds_of_blocks(given, params.wide_folds, params.wide_block, params.seed))

    def mixed(train_rows: Any, rows: Any, logits: Any) -> Any:
        first, bias = margins(matrix[train_rows], given[train_rows], 2, params.wide_strength)
        second, other = latent_margins(coordinates[train_rows], given[train_rows], 2, params.wide_latent_strength)
        both = [matrix[rows] @ first + bias, coordinates[rows] @ second + other]
        return np.linalg.lstsq(np.stack([each[:, 1] for each in both], axis=1), logits[rows, 1])[0]

    every = np.ones(80, dtype=bool)
    whole = mixed(every, every, found.branch.logits(list(train.whole())))
    for fold in folds:
        assert mixed(~fold, fold, found.train.numpy()) == pytest.approx(whole, abs=1e-3)
    assert abs(whole[0] - whole[1]) > 0.1, "or they could be swapped"


def test_texts_without_a_label_say_what_a_word_is_for(tmp_path: Path) -> None:
    text = [np.array([2, 20, 3])]
    leads = {
        unlabelled: lead_of(
            fitted(tmp_path / str(unlabelled), latent=3, unlabelled=unlabelled).branch.logits(text)[0], 1
        )
        for unlabelled in (False, True)
    }
    assert leads[True] > leads[False] + 0.5


@pytest.mark.parametrize("classes", [2, 3])
def test_the_branch_with_directions_is_read_as_it_was_fitted(classes: int, tmp_path: Path) -> None:
    labels = [row // 5 % classes for row in range(80)]
    found = fitted(tmp_path, latent=7, unlabelled=False, labels=labels)
    branch = found.branch
    assert branch.latent is not None and branch.latent.weights.any()
    assert (found.train.argmax(dim=1).numpy() == labels).all()
    branch.save(tmp_path)
    read = read_wide(tmp_path, longest=1, latent=7, size=SIZE, classes=classes)
    assert read is not None
    texts = [np.array([2, 9, 11, 3]), np.array([2, 3]), np.array([2, 29, 3]), np.array([2, 9, 11, 13, 14, 15, 3])]
    assert read.logits(texts).tolist() == branch.logits(texts).tolist()
    for text, logits in zip(texts, branch.logits(texts), strict=True):
        parts = sum((each.weights for each in branch.contributions(text)), np.zeros(classes))
        assert logits - branch.bias == pytest.approx(parts, abs=1e-6)
    (best,) = branch.heaviest(1, 1)
    assert best.ids == [11]


def test_a_file_without_the_directions_of_its_model_is_refused(tmp_path: Path) -> None:
    keys, weights = np.array([4]), np.ones((1, 2))
    WideBranch(keys, weights, np.zeros(2), size=SIZE, longest=2).save(tmp_path)
    with pytest.raises(UserError, match=r"wide\.npz cannot be read .*latent_weights.* run `dvc repro`"):
        read_wide(tmp_path, longest=2, latent=3, size=SIZE, classes=2)
    other = Latent(np.ones((2, 2)), np.ones(2))
    WideBranch(keys, weights, np.zeros(2), size=SIZE, longest=2, latent=other).save(tmp_path)
    with pytest.raises(UserError, match="belongs to another model"):
        read_wide(tmp_path, longest=2, latent=3, size=SIZE, classes=2)


def test_train_reads_the_texts_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {**ON, "model.wide_latent": 4, "model.max_length": 12}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train")
    encoded, trained = tmp_path / "data/sentiment/encoded", tmp_path / "models/sentiment/trained"
    alone, known = (trained / WIDE).read_bytes(), list(stages.observer.lines)
    (texts,) = (line for line in known if "latent directions" in line)
    assert texts.startswith("wide branch: looks for 4 latent directions in 200 training texts (300")
    shutil.copytree(encoded / "test", encoded / "unsupervised")
    stages.observer.lines.clear()
    stages.run("train")
    more = len(read_labels(encoded / "test"))
    assert any(f" in 200 training texts and {more} texts without a label" in line for line in stages.observer.lines)
    assert (trained / WIDE).read_bytes() != alone


def test_ngrams_of_texts_without_a_label_alone_have_no_weight(tmp_path: Path) -> None:
    """The branch does not grow with those texts: half of them have a 25."""
    branch = fitted(tmp_path, latent=3, unlabelled=True).branch
    assert branch.keys.tolist() == [9, 10, 11, 13, 14, 15, 16, 20]
