"""The vectors of the wide branch: found without labels, along which a regression runs, read again."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

from tests.builders import TRAIN
from tests.stages import Stages
from tests.training.test_wide import ON, SIZE, WIDE_TRAIN, texts_in
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.encoded.store import read_labels
from transformer.families.classifier.data.naive_bayes import folds_of_blocks, margins, occurrence_matrix
from transformer.families.classifier.data.vectors import _regressed, vector_margins, vectors_of
from transformer.families.classifier.data.wide import FittedWide, fit_wide, shares
from transformer.families.classifier.nn.config import WideParams
from transformer.families.classifier.nn.ngrams import Occurrences
from transformer.families.classifier.nn.vectors import ONE_CORE, Background, directions, in_8_bits, unit
from transformer.families.classifier.nn.weights import ClassifierTrainParams
from transformer.families.classifier.nn.wide import WIDE, WideBranch, lead_of, read_wide


def drawn(texts: int = 60, features: int = 25) -> csr_array:
    found = np.random.default_rng(3).random((texts, features)) < np.linspace(0.05, 0.6, features)
    found[0] = False
    return csr_array(found.astype(np.float64))


def some_vectors(count: int, size: int, seed: int = 0) -> Any:
    return unit(np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_vector_minimises_its_squared_errors(count: int) -> None:
    """Own products are to be 1, and those of 5 random others each -1: the gradient of their sum is 0. By count, either
    way of solving."""
    others, own = some_vectors(50, 8), some_vectors(count, 8, seed=1)
    weights = np.arange(1, 51)
    found = torch.from_numpy(Background.of(others, weights).regressed(own)).double().requires_grad_()
    towards, away = torch.from_numpy(own).double(), torch.from_numpy(others).double()
    shares = torch.from_numpy(weights / weights.sum())
    loss = ((1 - towards @ found) ** 2).sum() + 5 * count * (shares * (-1 - away @ found) ** 2).sum()
    (gradient,) = torch.autograd.grad(loss + 0.11 * count * (found**2).sum(), found)
    assert found.detach().norm() > 0.1
    assert gradient.norm() < 1e-4 * count


def test_a_row_of_8_bits_has_the_same_direction() -> None:
    vectors = some_vectors(200, 64)
    assert ((vectors * directions(in_8_bits(3 * vectors))).sum(axis=1) > 0.9995).all()
    assert not directions(in_8_bits(np.zeros((1, 4), dtype=np.float32))).any()


def every(texts: int) -> list[Any]:
    """Folds: every fourth text."""
    return [np.arange(texts) % 4 == fold for fold in range(4)]


def test_the_vectors_of_ngrams_are_regressed_on_the_texts_that_have_them() -> None:
    """Against the singular vectors of NumPy's exact decomposition of the dense matrix, up to their signs."""
    matrix = drawn()
    dense = matrix.toarray()
    weighted = dense * np.log(len(dense) / dense.sum(axis=0))
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    left, _, _ = np.linalg.svd(weighted / np.where(lengths, lengths, 1), full_matrices=False)
    texts = unit(left[:, :4].astype(np.float32))
    texts[0] = 0  # without n-grams, where the decomposition leaves rounding

    def ngrams(rows: Any) -> Any:
        background = Background.of(texts[rows], dense[rows].sum(axis=1))
        return unit(np.stack([background.regressed(texts[rows & (column > 0)]) for column in dense.T]))

    folds = every(40)
    found = vectors_of([matrix[:40], matrix[40:]], 4, 1000, 1, folds, Observer())
    assert found.places.tolist() == [*range(25)]
    assert np.abs(directions(found.vectors)) == pytest.approx(np.abs(ngrams(np.ones(60, bool))), abs=2e-2), "8 bits"
    assert not found.directions[0].any(), "a text without n-grams"
    lengths = []
    for fold in folds:
        rest = np.ones(60, dtype=bool)
        rest[:40] = ~fold
        vectors = ngrams(rest)
        background = Background.of(vectors, dense[rest].sum(axis=0))
        for row in np.flatnonzero(fold):
            own = vectors[dense[row] > 0]
            expected = background.regressed(own)
            assert np.abs(found.directions[row]) == pytest.approx(np.abs(2 * unit(expected)), abs=5e-2), "8 bits"
            lengths += [len(own) * np.linalg.norm(expected)] if len(own) else []
    assert found.typical == pytest.approx(np.median(lengths), rel=2e-2)


def test_the_ngrams_of_most_texts_have_a_vector_and_no_more_dimensions_than_there_are() -> None:
    matrix = drawn(features=6)
    lonely = csr_array(np.eye(60, 1))
    both = csr_array(np.hstack([matrix.toarray(), lonely.toarray(), np.ones((60, 1))]))
    found = vectors_of([both], 500, 1000, 1, every(60), Observer())
    assert found.places.tolist() == [0, 1, 2, 3, 4, 5], "the others: in one text, and in all"
    assert found.vectors.shape == (6, 6)
    twice = csr_array(np.hstack([matrix.toarray(), matrix.toarray()]))
    assert vectors_of([twice], 12, 1000, 1, every(60), Observer()).vectors.shape == (12, 6), "its rank"
    assert vectors_of([both], 500, 2, 1, every(60), Observer()).places.tolist() == [4, 5]
    nothing = vectors_of([lonely], 5, 1000, 1, every(60), Observer())
    assert nothing.directions.shape == (60, 0)
    assert nothing.fitted(np.zeros((0, 2))).logits(np.array([0])).tolist() == [0, 0]


def test_the_branch_adds_the_regression_along_the_direction_of_a_text() -> None:
    matrix = drawn()
    found = vectors_of([matrix], 5, 20, 1, every(60), Observer())
    slopes = np.random.default_rng(0).normal(size=(5, 3))
    fitted, vectors = found.fitted(slopes), directions(found.vectors)
    for text in range(60):
        places = matrix.indices[matrix.indptr[text] : matrix.indptr[text + 1]]
        own = vectors[[row for row, place in enumerate(found.places) if place in places]]
        expected = np.sqrt(5) * unit(found.background.regressed(own)) @ slopes
        assert fitted.logits(places) == pytest.approx(expected, abs=1e-4)
        parts = fitted.parts(places)
        assert parts.sum(axis=0) == pytest.approx(expected, abs=1e-4)
        assert not parts[~np.isin(places, found.places)].any()


def test_the_weights_of_ngrams_are_their_parts_in_a_text_that_is_like_all() -> None:
    """It has each n-gram once, as the background has, and the usual length."""
    found = vectors_of([drawn()], 5, 20, 1, every(60), Observer())
    own = directions(found.vectors)
    background = Background.of(own, np.ones(20))
    typical = 20 * float(np.linalg.norm(background.regressed(own)))
    fitted = found._replace(background=background, typical=typical).fitted(np.random.default_rng(0).normal(size=(5, 3)))
    assert fitted.weights == pytest.approx(fitted.parts(found.places), abs=1e-4)


def test_an_ngram_of_which_nothing_is_known_does_not_place_a_text() -> None:
    """As one without a vector does not place a new text; there are more texts than one task of a core has."""
    matrix, others = drawn(texts=600), some_vectors(25, 4)
    others[7] = 0
    known = matrix.tolil()
    known[:, 7] = 0
    background = Background.of(others, np.ones(25))
    found, expected = (_regressed(csr_array(each), others, background) for each in (matrix, known.tocsr()))
    assert found == pytest.approx(expected, abs=1e-6) and found[-1].any()


def test_one_core_until_the_last_has_left() -> None:
    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(ONE_CORE)
            second.enter_context(ONE_CORE)
            first.close()
            assert threads() == {1}
        assert threads() == {2}


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


def test_branch_and_held_out_logits_mix_the_regressions_alike(tmp_path: Path) -> None:
    labels = [int(row // 5 % 4 == 0) for row in range(80)]
    train = texts_in(
        tmp_path, [[9, 10 + label, 13 + row % 4, 17 + row % 3] for row, label in enumerate(labels)], labels
    )
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN, "wide_strength": 0.01, "wide_vector_strength": 1.0})
    found = fit_wide(train, train, WideParams(wide_ngrams=2, wide_vectors=3), params, Observer())
    assert found.branch.vectors is not None
    occurring = Occurrences.of(train.whole(), SIZE, 2)
    matrix, given = occurrence_matrix(occurring, found.branch.keys), np.array(labels, dtype=np.int8)
    folds = list(folds_of_blocks(given, params.wide_folds, params.wide_block, params.seed))
    along = vectors_of([matrix], 3, 100_000, params.seed, folds, Observer())

    def mixed(fold: Any, logits: Any) -> Any:
        """The shares of the two regressions in logits: of a fold, or of all texts by the branch itself."""
        seen = np.ones(80, dtype=bool) if fold is None else ~fold
        first, bias = margins(matrix[seen], given[seen], 2, params.wide_strength)
        slopes, other = vector_margins(along.directions[seen], given[seen], 2, params.wide_vector_strength)
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


def test_ngrams_of_texts_without_a_label_alone_have_no_weight(tmp_path: Path) -> None:
    """The branch does not grow with those texts: half of them have a 25."""
    branch = fitted(tmp_path, vectors=3, unlabelled=True).branch
    assert branch.keys.tolist() == [9, 10, 11, 13, 14, 15, 16, 20]
