"""Training of n-gram models: the kind `ngrams`, and the linear baseline of `evaluate`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from transformer.core.observer import Observer
from transformer.families.classifier.data.naive_bayes import Floats, known_keys, margins, occurrence_matrix
from transformer.families.classifier.data.vectors import Found, vectors_of
from transformer.families.classifier.nn.config import ClassifierConfig, NgramParams
from transformer.families.classifier.nn.ngram_model import NgramModel
from transformer.families.classifier.nn.ngrams import Ids, Occurrences

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
