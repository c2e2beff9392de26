"""The vectors of the wide branch: found without labels, along which a regression runs, read again."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from transformer.families.classifier.data.wide import FittedWide, fit_wide, shares
from transformer.families.classifier.nn.wide import WIDE, WideBranch, lead_of, read_wide

from tests.builders import TRAIN
from tests.stages import Stages
from tests.training.test_wide import ON, SIZE, WIDE_TRAIN, texts_in
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.encoded.store import read_labels
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.naive_bayes import folds_of_blocks, margins, occurrence_matrix
from transformer.families.classifier.data.vectors import vector_margins, vectors_of
from transformer.families.classifier.nn.config import WideParams
from transformer.families.classifier.nn.ngrams import Occurrences
from transformer.families.classifier.nn.vectors import Background
from transformer.families.classifier.nn.weights import ClassifierTrainParams


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


def fitted(tmp_path: Path, *, vectors: int, unlabelled: bool, labels: list[int] | None = None) -> FittedWide:
    """20 is in two texts of either label; among the texts without one it is beside 11, which is for label 1."""
    given = [row // 5 % 2 for row in range(80)] if labels is None else labels
    texts = [[9, 10 + label, 13 + row % 4, *([20] if row in (0, 5, 40, 45) else [])] for row, label in enumerate(given)]
    train = texts_in(tmp_path / "train", texts, given, classes=max(given) + 1)
    more = [[11, 20, 13 + row % 4, 25] if row % 2 else [10, 13 + row % 4] for row in range(120)]
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_vector_strength": 1.0})
    model = WideParams(wide_ngrams=1, wide_vectors=vectors)
    others = texts_in(tmp_path / "more", more, [-1] * 120) if unlabelled else None
    return fit_wide(train, train, model, params, Observer(), others)


def test_the_held_out_logits_are_those_of_the_shares(tmp_path: Path) -> None:
    """A fifth of the labels are wrong; no factor of the sum lowers its loss, so the network trains beside good odds."""
    generator = np.random.default_rng(0)
    said = generator.integers(0, 2, 200)
    labels = np.where(generator.random(200) < 0.2, 1 - said, said)
    texts = [[9, 10 + word, *generator.integers(12, 20, 3)] for word in said]
    train = texts_in(tmp_path, texts, labels.tolist())
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_vector_strength": 1.0})
    found = fit_wide(train, train, WideParams(wide_ngrams=1, wide_vectors=3), params, Observer())
    assert shares((found.train.numpy().astype(np.float64),), labels) == pytest.approx([1], abs=1e-2)


@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 4.0])])
def test_branch_and_held_out_logits_mix_the_regressions_alike(weights: torch.Tensor | None, tmp_path: Path) -> None:
    labels = [int(row // 5 % 4 == 0) for row in range(80)]
    train = texts_in(
        tmp_path, [[9, 10 + label, 13 + row % 4, 17 + row % 3] for row, label in enumerate(labels)], labels
    )
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_strength": 0.01, "wide_vector_strength": 1.0})
    found = fit_wide(train, train, WideParams(wide_ngrams=2, wide_vectors=3), params, Observer(), weights=weights)
    factors = np.ones(80) if weights is None else weights.numpy().astype(np.float64)[labels]
    assert found.branch.vectors is not None
    occurring = Occurrences.of(train.whole(), SIZE, 2)
    matrix, given = occurrence_matrix(occurring, found.branch.keys), np.array(labels, dtype=np.int8)
    folds = list(folds_of_blocks(given, params.wide_folds, params.wide_block, params.seed))
    along = vectors_of([matrix], 3, 100_000, params.seed, folds, Observer())

    def mixed(fold: Any, logits: Any) -> Any:
        """The shares of the two regressions in logits: of a fold, or of all texts by the branch itself."""
        seen = np.ones(80, dtype=bool) if fold is None else ~fold
        first, bias = margins(matrix[seen], given[seen], 2, params.wide_strength, factors[seen])
        strength = params.wide_vector_strength
        slopes, other = vector_margins(along.directions[seen], given[seen], 2, strength, factors[seen])
        if fold is None:
            answering = along.fitted(slopes)
            second = np.stack([answering.logits(np.flatnonzero(row)) for row in matrix.toarray()])
        else:
            second = along.directions[fold] @ slopes
        both = [(matrix if fold is None else matrix[fold]) @ first + bias, second + other]
        each = np.stack([part[:, 1] for part in both], axis=1)
        found = np.linalg.lstsq(each, logits[:, 1])[0]
        assert each @ found == pytest.approx(logits[:, 1], abs=1e-3), "the bias too"
        return found

    whole = mixed(None, found.branch.logits(list(train.whole())))
    for fold in folds:
        assert mixed(fold, found.train.numpy()[fold]) == pytest.approx(whole, abs=1e-3)
    assert abs(whole[0] - whole[1]) > 0.1, "or they could be swapped"


def test_texts_without_a_label_say_what_a_word_is_for(tmp_path: Path) -> None:
    text = [np.array([2, 20, 3])]
    leads = {
        unlabelled: lead_of(
            fitted(tmp_path / str(unlabelled), vectors=3, unlabelled=unlabelled).branch.logits(text)[0], 1
        )
        for unlabelled in (False, True)
    }
    assert leads[True] > leads[False] + 0.5


@pytest.mark.parametrize("classes", [2, 3])
def test_the_branch_with_vectors_is_read_as_it_was_fitted(classes: int, tmp_path: Path) -> None:
    labels = [row // 5 % classes for row in range(80)]
    found = fitted(tmp_path, vectors=7, unlabelled=False, labels=labels)
    branch = found.branch
    assert branch.vectors is not None and branch.vectors.slopes.any()
    assert (found.train.argmax(dim=1).numpy() == labels).all()
    branch.save(tmp_path)
    read = read_wide(tmp_path, longest=1, vectors=7, size=SIZE, classes=classes)
    assert read is not None
    texts = [np.array([2, 9, 11, 3]), np.array([2, 3]), np.array([2, 29, 3]), np.array([2, 9, 11, 13, 14, 15, 3])]
    assert read.logits(texts).tolist() == branch.logits(texts).tolist()
    assert read.logits([]).shape == (0, classes)
    for text, logits in zip(texts, branch.logits(texts), strict=True):
        parts = sum((each.weights for each in branch.contributions(text)), np.zeros(classes))
        assert logits - branch.bias == pytest.approx(parts, abs=1e-4)
    (best,) = branch.heaviest(1, 1)
    assert best.ids == [11]
    heavy = branch.vectors.weights.copy()
    heavy[3] = np.eye(classes)[1] * 99
    branch.vectors = branch.vectors._replace(weights=heavy)
    (best,) = branch.heaviest(1, 1)
    assert best.ids == [int(branch.keys[branch.vectors.places[3]])]


def test_a_file_without_the_vectors_of_its_model_is_refused(tmp_path: Path) -> None:
    keys, weights = np.array([4]), np.ones((1, 2))
    WideBranch(keys, weights, np.zeros(2), size=SIZE, longest=2).save(tmp_path)
    with pytest.raises(UserError, match=r"wide\.npz cannot be read .*vector_shift.* run `dvc repro`"):
        read_wide(tmp_path, longest=2, vectors=3, size=SIZE, classes=2)
    branch = fitted(tmp_path, vectors=3, unlabelled=False).branch
    assert branch.vectors is not None
    right = branch.vectors
    shift, matrix = right.background.shift, right.background.matrix
    for other, size in (
        (right._replace(places=right.places + 9), 3),
        (right._replace(places=right.places[::-1]), 3),
        (right._replace(places=np.array(3)), 3),
        (right._replace(vectors=right.vectors.astype(np.float32)), 3),
        (right._replace(slopes=right.slopes[:2]), 3),
        (right._replace(slopes=right.slopes.astype(str)), 3),
        (right._replace(weights=right.weights[1:]), 3),
        (right._replace(background=Background(shift[1:], matrix)), 3),
        (right._replace(background=Background(shift, matrix[1:])), 3),
        (right, 2),
        (right, 0),
    ):
        branch.vectors = other
        branch.save(tmp_path)
        with pytest.raises(UserError, match="belongs to another model"):
            read_wide(tmp_path, longest=1, vectors=size, size=SIZE, classes=2)


def test_the_directions_of_an_older_version_are_refused(tmp_path: Path) -> None:
    """Without them its weights, which are a share of the sum, would answer something else in silence."""
    branch = fitted(tmp_path, vectors=0, unlabelled=False).branch
    branch.save(tmp_path)
    with np.load(tmp_path / WIDE) as file:
        np.savez(tmp_path / WIDE, **file, latent_weights=branch.weights, latent_norms=branch.weights[:, 0])
    with pytest.raises(UserError, match="belongs to another model"):
        read_wide(tmp_path, longest=1, size=SIZE, classes=2)


def test_train_reads_the_texts_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {**ON, "model.wide_vectors": 4, "model.max_length": 12}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train")
    encoded, trained = tmp_path / "data/sentiment/encoded", tmp_path / "models/sentiment/trained"
    alone, known = (trained / WIDE).read_bytes(), list(stages.observer.lines)
    (texts,) = (line for line in known if "looks for vectors" in line)
    assert texts.startswith("wide branch: looks for vectors of 400 n-grams in 200 training texts (400")
    shutil.copytree(encoded / "test", encoded / "unsupervised")
    stages.observer.lines.clear()
    stages.run("train")
    more = len(read_labels(encoded / "test"))
    assert any(f" in 200 training texts and {more} texts without a label" in line for line in stages.observer.lines)
    assert (trained / WIDE).read_bytes() != alone


def test_the_branch_has_the_weights_of_the_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"negative": 1.0, "positive": 1000.0}
    stages = Stages(tmp_path, "sentiment", monkeypatch, {**ON, "train.class_weights": given})
    stages.run("download", "tokenize", "build_vocab", "train")
    size = read_vocabularies(tmp_path / "data/sentiment/vocab", "text")["text"].size
    branch = read_wide(tmp_path / "models/sentiment/trained", longest=3, size=size, classes=2)
    assert branch is not None
    assert branch.bias[1] > branch.bias[0] + 1


def test_blas_has_the_cores_of_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not all of a machine: their number changes the last bits, and the checkpoints of a run do not know it."""
    seen = []

    def found(*arguments: Any) -> Any:
        seen.append({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
        return vectors_of(*arguments)

    monkeypatch.setattr("transformer.families.classifier.data.wide.vectors_of", found)
    changes: dict[str, Any] = {**ON, "model.wide_vectors": 4, "model.max_length": 12}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes)
    stages.content["hardware"]["threads"] = 1
    with threadpool_limits(2, user_api="blas"):
        stages.run("download", "tokenize", "build_vocab", "train")
    assert seen == [{1}]


def test_ngrams_of_texts_without_a_label_alone_have_no_weight(tmp_path: Path) -> None:
    """The branch does not grow with those texts: half of them have a 25."""
    branch = fitted(tmp_path, vectors=3, unlabelled=True).branch
    assert branch.keys.tolist() == [9, 10, 11, 13, 14, 15, 16, 20]
