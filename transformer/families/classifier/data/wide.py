"""Fits the wide branch on training texts, and prepares what the network trains beside."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from torch import Tensor

from transformer.core.observer import Observer
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.data.naive_bayes import (
    Floats,
    folds_of_blocks,
    known_keys,
    margins,
    occurrence_matrix,
)
from transformer.families.classifier.data.vectors import vector_margins, vectors_of
from transformer.families.classifier.nn.config import WideParams
from transformer.families.classifier.nn.ngrams import Occurrences
from transformer.families.classifier.nn.weights import ClassifierTrainParams
from transformer.families.classifier.nn.wide import WideBranch


class FittedWide(NamedTuple):
    """The wide branch, and its logits where the network needs them."""

    branch: WideBranch
    train: Tensor
    """(N, K): of each training text by a branch that has not seen its fold, as those of new texts will be (but for the
    first step towards vectors, which knows no labels and reads all texts)."""
    validation: Tensor
    """(V, K): by `branch`."""


def fit_wide(
    train: EncodedTexts,
    validation: EncodedTexts,
    model: WideParams,
    params: ClassifierTrainParams,
    observer: Observer,
    unlabelled: EncodedTexts | None = None,
    weights: Tensor | None = None,
) -> FittedWide:
    """Fit the branch on the training texts alone, on all and on all but each fold.

    The weights solve a convex problem, so they need no epochs and no state of their own: the same texts give the same
    branch, in a resumed run too. Trained with the network by Adam, it fits the training texts within an epoch, scores
    less, and leaves the network nothing to learn (docs/notes/results.md).

    unlabelled: further texts, in which the vectors of n-grams are found as well; weights: (K,) the factors of the loss
    by class, None for 1.
    """
    size, classes = train.config.size, train.config.classes
    found = Occurrences.of(train.whole(), size, model.wide_ngrams)
    keys = known_keys(found, model.wide_features)
    labels, matrix = np.asarray(train.labels), occurrence_matrix(found, keys)
    factors = None if weights is None else weights.cpu().numpy().astype(np.float64)[labels]
    del found  # as large as the matrix, and no longer needed
    folds = list(folds_of_blocks(labels, params.wide_folds, params.wide_block, params.seed, train.whole()))
    slopes, bias, held_out = _crossed(margins, matrix, labels, classes, params.wide_strength, folds, factors)
    vectors = None
    if model.wide_vectors:
        matrices = [matrix]
        if unlabelled is not None:
            more = Occurrences.of(unlabelled.whole(), size, model.wide_ngrams)
            matrices.append(occurrence_matrix(more, keys))
            del more
        observer.say(
            f"wide branch: looks for vectors of {min(model.wide_vector_ngrams, len(keys)):,} n-grams in"
            f" {' and '.join(_counts(matrices))} (400,000 with 256 dimensions in 75,000 reviews take five minutes)"
        )
        along = vectors_of(matrices, model.wide_vectors, model.wide_vector_ngrams, params.seed, folds, observer)
        further, intercept, second = _crossed(
            vector_margins, along.directions, labels, classes, params.wide_vector_strength, folds, factors
        )
        share, other = shares((held_out, second), labels, factors)
        held_out = share * held_out + other * second
        slopes, bias = share * slopes, share * bias + other * intercept
        vectors = along.fitted(other * further)
    single = slopes.astype(np.float32), bias.astype(np.float32)
    branch = WideBranch(keys, *single, size=size, longest=model.wide_ngrams, vectors=vectors)
    alone = branch.logits(list(validation.whole()))
    observer.say(
        f"wide branch: {len(keys):,} n-grams; alone, accuracy {_accuracy(held_out, labels)} on training texts that it"
        f" has not seen, {_accuracy(alone, np.asarray(validation.labels))} on validation"
    )
    return FittedWide(branch, _tensor(held_out), _tensor(alone))


def _crossed(
    fit: Callable[[Any, NDArray[Any], int, float, Floats | None], tuple[Floats, Floats]],
    texts: Any,
    labels: NDArray[Any],
    classes: int,
    strength: float,
    folds: Sequence[NDArray[np.bool_]],
    factors: Floats | None,
) -> tuple[Floats, Floats, Floats]:
    """Weights (F, K) and biases (K,) fitted to all texts, and the logits (N, K) of each fitted to the other folds.

    fit: as `margins`; texts: (N, F).
    """
    held_out = np.zeros((len(labels), classes))
    for fold in folds:
        seen = None if factors is None else factors[~fold]
        weights, bias = fit(texts[~fold], labels[~fold], classes, strength, seen)
        held_out[fold] = texts[fold] @ weights + bias
    return *fit(texts, labels, classes, strength, factors), held_out


def shares(logits: Sequence[Floats], labels: NDArray[Any], factors: Floats | None = None) -> Floats:
    """The factors of each model's logits, from 0 to 1, whose sum has the smallest cross-entropy (Wolpert 1992).

    Above 1, logits that separate the labels would grow without end. logits: (N, K) of each, of texts that it has not
    seen; labels: (N,); factors: (N,) of each text's loss, None for 1.
    """
    each, rows = np.stack(logits), np.arange(len(labels))
    counted = np.ones(len(labels)) if factors is None else factors

    def loss(factors: Floats) -> tuple[float, Floats]:
        total = np.tensordot(factors, each, axes=1)
        excess = softmax(total, axis=1)
        excess[rows, labels] -= 1
        gradient = (each * (counted[:, None] * excess)).sum(axis=(1, 2)) / len(labels)
        return float(-(counted * log_softmax(total, axis=1)[rows, labels]).mean()), gradient

    found: Floats = minimize(
        loss, np.full(len(each), 1 / len(each)), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(each)
    ).x
    return found


def _counts(matrices: Sequence[csr_array]) -> Iterator[str]:
    for matrix, name in zip(matrices, ("training texts", "texts without a label"), strict=False):
        yield f"{matrix.shape[0]:,} {name}"


def _accuracy(logits: NDArray[Any], labels: NDArray[Any]) -> str:
    return f"{100 * float((logits.argmax(axis=1) == labels).mean()):.1f} %" if len(labels) else "-"


def _tensor(logits: NDArray[Any]) -> Tensor:
    return torch.from_numpy(logits.astype(np.float32))
