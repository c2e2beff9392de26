"""Training of n-gram models: the kind `ngrams`, and the linear baseline of `evaluate`."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from transformer.core.observer import Observer
from transformer.families.classifier.interface import ClassifierConfig, NgramParams
from transformer.families.classifier.ngrams import (
    ONE_CORE,
    Background,
    Floats32,
    Ids,
    NgramModel,
    NgramVectors,
    Occurrences,
    directions,
    in_8_bits,
    unit,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
FEWEST = 2
"""Minimum document frequency of an n-gram."""
_SMOOTHING = 1.0


def known_keys(occurrences: Occurrences, most: int) -> Ids:
    """Return the sorted keys of n-grams in at least `FEWEST` texts; the `most` with the highest document frequency."""
    keys, counts = np.unique(occurrences.keys, return_counts=True)
    keys, counts = keys[counts >= FEWEST], counts[counts >= FEWEST]
    if len(keys) <= most:
        return keys
    return np.sort(keys[np.argsort(-counts, kind="stable")[:most]])


def occurrence_matrix(occurrences: Occurrences, known: Ids) -> csr_array:
    """Return the binary occurrence matrix (texts, known): 1 where a text has the n-gram. known: sorted keys."""
    rows, columns = occurrences.among(known)
    where = rows.astype(np.int32), columns.astype(np.int32)  # liblinear only takes int32
    return csr_array((np.ones(len(rows)), where), shape=(occurrences.texts, len(known)))


def log_count_ratio(matrix: csr_array, labels: Labels) -> Floats:
    """Return each feature's log-count ratio r = log((p / |p|) / (q / |q|)), (F,) (Wang and Manning 2012, section 2.1).

    p and q count the texts of class 1 and 0 with the feature, plus 1.

    matrix: (N, F) of zeros and ones; labels: (N,) of 0 and 1.
    """
    p, q = (_SMOOTHING + matrix.T @ (labels == label).astype(np.float64) for label in (1, 0))
    ratio: Floats = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


def margins(
    matrix: csr_array,
    directions: NDArray[Any],
    labels: NDArray[Any],
    classes: int,
    strength: float,
    factors: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Fit weights (F + D, K) and biases (K,) of the class logits: one regression, or one-vs-rest if K > 2.

    A class that all texts have, or none, gets the logit of its smoothed frequency.
    matrix: (N, F) of zeros and ones, weighted by naive Bayes; directions: (N, D) further features, used unweighted;
    labels: (N,); strength: inverse regularization strength; factors: (N,) loss weight per text, None for 1.
    """
    fit = partial(_fitted, matrix, csr_array(directions), strength, factors)
    if classes == 2:
        weight, bias = fit((labels == 1).astype(np.int8))
        return np.stack((-weight, weight), axis=1) / 2, np.array([-bias, bias]) / 2
    each = [fit((labels == number).astype(np.int8)) for number in range(classes)]
    return np.stack([weight for weight, _ in each], axis=1), np.array([bias for _, bias in each])


def _fitted(
    matrix: csr_array, directions: csr_array, strength: float, factors: Floats | None, labels: Labels
) -> tuple[Floats, float]:
    """Fit a binary regression on labels of 0 and 1. Returns the weights (F + D,) and the bias."""
    width, ones = matrix.shape[1] + directions.shape[1], int(labels.sum())
    if not width or ones in (0, len(labels)):
        return np.zeros(width), float(np.log((ones + _SMOOTHING) / (len(labels) - ones + _SMOOTHING)))
    ratio = log_count_ratio(matrix, labels)
    weighted = matrix.copy()
    weighted.data = ratio[weighted.indices]
    model = LogisticRegression(C=strength, solver="liblinear", dual=True, random_state=0, max_iter=1000)
    model.fit(hstack((weighted, directions), format="csr"), labels, factors)
    weights: Floats = model.coef_[0]
    weights[: len(ratio)] *= ratio
    return weights, float(model.intercept_[0])


_NEGLIGIBLE = 1e-6
"""Relative cutoff for singular values: smaller ones are rounding errors, in a corpus of lower rank than requested."""
_CHUNK = 256


class Found(NamedTuple):
    """The n-grams that have a vector, and the document vectors."""

    places: NDArray[np.int32]
    """(M,): matrix columns of these n-grams."""
    vectors: NDArray[np.int8]
    """(M, D): n-gram vectors."""
    background: Background
    """Background statistics for inferring a new document vector."""
    directions: Floats32
    """(N, D): unit document vectors of the labelled texts, times sqrt(D), cross-fitted without their fold."""
    typical: float
    """Median over labelled texts of document vector length times number of n-grams."""

    def fitted(self, slopes: Floats) -> NgramVectors:
        """Return the vectors with the slopes (D, K) of a regression on `directions`."""
        slopes = slopes * np.sqrt(len(slopes))
        along = np.linalg.solve(self.background.usual(), slopes)
        weights = (directions(self.vectors) - self.background.shift) @ along / self.typical
        single = slopes.astype(np.float32), weights.astype(np.float32)
        return NgramVectors(self.places, self.vectors, self.background, *single)


def vectors_of(
    matrices: Sequence[csr_array],
    size: int,
    most: int,
    seed: int,
    folds: Sequence[NDArray[np.bool_]],
    observer: Observer,
) -> Found:
    """Compute vectors of `size` dimensions (fewer if the rank is lower) of the `most` n-grams by document frequency.

    An n-gram's vector leans towards the texts it was regressed on, more than towards new ones, and the more so the
    rarer it is. So the texts of a fold are inferred from n-gram vectors fitted on all other texts; all share the axes
    of the latent semantic analysis.

    matrices: (N, F) of zeros and ones, of the labelled texts and then of others; seed: for the randomized SVD
    (Halko et al. 2011); folds: masks (N,) of the labelled texts.
    """
    labelled, whole = matrices[0].shape[0], vstack(matrices, format="csr")
    counts = np.bincount(whole.indices, minlength=whole.shape[1])
    places = np.flatnonzero((counts >= FEWEST) & (counts < whole.shape[0]))
    places = np.sort(places[np.argsort(-counts[places], kind="stable")[:most]])
    found = whole[:, places]
    del whole
    at_first = _analysed(found, counts[places], size, seed)
    own = found[:labelled]
    placed = np.zeros((labelled, at_first.shape[1]), dtype=np.float32)
    for fold in observer.progress(folds, total=len(folds), what="vectors of n-grams"):
        others = np.ones(found.shape[0], dtype=bool)
        others[:labelled] = ~fold
        vectors, background = _of_ngrams(found[others], at_first[others])
        placed[fold] = _regressed(own[fold], directions(vectors), background)
    counts = np.diff(own.indptr)
    lengths = (counts * np.linalg.norm(placed, axis=1))[counts > 0]
    typical = float(np.median(lengths)) if len(lengths) else 1.0
    placed = unit(placed) * np.float32(np.sqrt(placed.shape[1]))
    return Found(places.astype(np.int32), *_of_ngrams(found, at_first), placed, typical or 1.0)


def _of_ngrams(found: csr_array, texts: Floats32) -> tuple[NDArray[np.int8], Background]:
    """Regress n-gram vectors, in 8 bits, on the texts (N, D) that contain them. Returns them and their background."""
    columns = found.T.tocsr()
    vectors = in_8_bits(_regressed(columns, texts, Background.of(texts, np.diff(found.indptr))))
    return vectors, Background.of(directions(vectors), np.diff(columns.indptr))


def _analysed(found: csr_array, counts: NDArray[np.int64], size: int, seed: int) -> Floats32:
    """Return document vectors (N, D) by latent semantic analysis with IDF weights."""
    size = min(size, *found.shape)
    if not size:
        return np.zeros((found.shape[0], 0), dtype=np.float32)
    weights = np.log(found.shape[0] / counts).astype(np.float32)
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    data = weights[found.indices]
    lengths = np.sqrt(np.bincount(rows, data.astype(np.float64) ** 2, minlength=found.shape[0]))
    data /= lengths[rows].astype(np.float32)
    normalised = csr_array((data, found.indices, found.indptr), shape=found.shape)
    left, values, _ = randomized_svd(normalised, size, n_oversamples=30, n_iter=2, random_state=seed)
    return unit(left[:, values > _NEGLIGIBLE * values[0]].astype(np.float32))


def _regressed(found: csr_array, others: Floats32, background: Background) -> Floats32:
    """Regress each row of `found`, (N, M), on the vectors (M, D) of `others` in it. Returns (N, D), not normalised.

    Each row's equations are solved on one core, so the result does not depend on the number of cores.
    """
    vectors = np.zeros((found.shape[0], others.shape[1]), dtype=np.float32)

    def solve(rows: range) -> None:
        for row in rows:
            own = others[found.indices[found.indptr[row] : found.indptr[row + 1]]]
            vectors[row] = background.regressed(own[own.any(axis=1)])  # drop zero vectors, as for new texts

    with ONE_CORE, ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for _ in pool.map(solve, _chunks(found.shape[0])):
            pass
    return vectors


def _chunks(count: int) -> Iterator[range]:
    return (range(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))


_FOLDS = 5


class Fitted(NamedTuple):
    """Result of `fit_ngrams`."""

    model: NgramModel
    logits: Floats
    """(N, K): logits of the training texts, each computed from the vector that the regression was fitted on."""


def fit_ngrams(
    config: ClassifierConfig,
    texts: Iterable[Ids],
    labels: NDArray[Any],
    *,
    unlabelled: Iterable[Ids] | None = None,
    factors: Floats | None = None,
    seed: int = 0,
    observer: Observer | None = None,
) -> Fitted:
    """Fit an n-gram model to N texts and their labels (N,). Its weights solve a convex problem.

    unlabelled: further texts for estimating n-gram vectors; factors: (N,) loss weight per text, None for 1; seed: for
    the vectors.
    """
    params = config.model
    assert isinstance(params, NgramParams)
    found = Occurrences.of(texts, config.size, params.ngrams)
    keys = known_keys(found, params.features)
    matrix = occurrence_matrix(found, keys)
    del found  # as large as the matrix, and no longer needed
    along, scale = None, np.sqrt(params.vector_strength / params.strength)
    directions = np.zeros((len(labels), 0))
    if params.vectors:
        matrices = [matrix]
        if unlabelled is not None:
            more = Occurrences.of(unlabelled, config.size, params.ngrams)
            matrices.append(occurrence_matrix(more, keys))
            del more
        along = _vectors(params, matrices, labels, seed, observer or Observer())
        directions = scale * along.directions
    weights, bias = margins(matrix, directions, labels, config.classes, params.strength, factors)
    weights, slopes = weights[: len(keys)], weights[len(keys) :]
    logits = matrix @ weights + directions @ slopes + bias
    vectors = None if along is None else along.fitted(scale * slopes)
    return Fitted(NgramModel(config, keys, weights, bias, vectors), logits)


def _vectors(
    params: NgramParams, matrices: Sequence[csr_array], labels: NDArray[Any], seed: int, observer: Observer
) -> Found:
    observer.say(
        f"looks for vectors of {min(params.vector_ngrams, matrices[0].shape[1]):,} n-grams in"
        f" {' and '.join(_counts(matrices))} (400,000 with 256 dimensions in 75,000 reviews take five minutes)"
    )
    return vectors_of(matrices, params.vectors, params.vector_ngrams, seed, list(folds_of(labels)), observer)


def folds_of(labels: NDArray[Any]) -> Iterator[NDArray[np.bool_]]:
    """Yield a mask (N,) of the rows of each cross-validation fold; the folds partition the rows.

    Each takes a contiguous share of every label's rows: neighbours, such as reviews of one film, are similar.
    """
    fold = np.empty(len(labels), dtype=np.int64)
    for number, label in enumerate(np.unique(labels)):
        rows = np.flatnonzero(labels == label)
        fold[rows] = (np.arange(len(rows)) * _FOLDS // len(rows) + number) % _FOLDS
    return (fold == each for each in range(_FOLDS))


def _counts(matrices: Sequence[csr_array]) -> Iterator[str]:
    for matrix, name in zip(matrices, ("training texts", "texts without a label"), strict=False):
        yield f"{matrix.shape[0]:,} {name}"
