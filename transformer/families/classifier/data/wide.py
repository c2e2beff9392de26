"""Fits the wide branch on training texts, and prepares what the network trains beside."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.core.observer import Observer
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.data.naive_bayes import (
    folds_of_blocks,
    known_keys,
    margins,
    occurrence_matrix,
)
from transformer.families.classifier.nn.config import WideParams
from transformer.families.classifier.nn.ngrams import Occurrences
from transformer.families.classifier.nn.weights import ClassifierTrainParams
from transformer.families.classifier.nn.wide import WideBranch


class FittedWide(NamedTuple):
    """The wide branch, and its logits where the network needs them."""

    branch: WideBranch
    train: Tensor
    """(N, K): of each training text by a branch that has not seen its fold, as those of new texts will be."""
    validation: Tensor
    """(V, K): by `branch`."""


def fit_wide(
    train: EncodedTexts, validation: EncodedTexts, model: WideParams, params: ClassifierTrainParams, observer: Observer
) -> FittedWide:
    """Fit the branch on the training texts alone, on all and on all but each fold.

    The weights solve a convex problem, so they need no epochs and no state of their own: the same texts give the same
    branch, in a resumed run too. Trained with the network by Adam, it fits the training texts within an epoch, scores
    less, and leaves the network nothing to learn (docs/notes/results.md).
    """
    size, classes = train.config.size, train.config.classes
    found = Occurrences.of(train.whole(), size, model.wide_ngrams)
    keys = known_keys(found, model.wide_features)
    labels, matrix = np.asarray(train.labels), occurrence_matrix(found, keys)
    weights, bias = margins(matrix, labels, classes, params.wide_strength)
    branch = WideBranch(keys, weights.astype(np.float32), bias.astype(np.float32), size=size, longest=model.wide_ngrams)
    held_out = np.zeros((len(labels), classes))
    for fold in folds_of_blocks(labels, params.wide_folds, params.wide_block, params.seed):
        weights, bias = margins(matrix[~fold], labels[~fold], classes, params.wide_strength)
        held_out[fold] = matrix[fold] @ weights + bias
    alone = branch.logits(list(validation.whole()))
    observer.say(
        f"wide branch: {len(keys):,} n-grams; alone, accuracy {_accuracy(held_out, labels)} on training texts that it"
        f" has not seen, {_accuracy(alone, np.asarray(validation.labels))} on validation"
    )
    return FittedWide(branch, _tensor(held_out), _tensor(alone))


def _accuracy(logits: NDArray[Any], labels: NDArray[Any]) -> str:
    return f"{100 * float((logits.argmax(axis=1) == labels).mean()):.1f} %" if len(labels) else "-"


def _tensor(logits: NDArray[Any]) -> Tensor:
    return torch.from_numpy(logits.astype(np.float32))
