"""Logistic regression over n-grams weighted by Naive Bayes (Wang and Manning 2012; Mesnil et al. 2015, section 2.3).

The linear baseline of `evaluate`, and the wide branch that `train` puts beside a network.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from transformer.core.errors import UserError
from transformer.families.classifier.nn.ngrams import Ids, Occurrences

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
FEWEST = 2
"""The minimum number of texts with an n-gram."""
_SMOOTHING = 1.0


def known_keys(occurrences: Occurrences, most: int | None = None) -> Ids:
    """The keys of n-grams in at least `FEWEST` texts, sorted; of more than `most`, those in the most texts."""
    keys, counts = np.unique(occurrences.keys, return_counts=True)
    keys, counts = keys[counts >= FEWEST], counts[counts >= FEWEST]
    if most is None or len(keys) <= most:
        return keys
    return np.sort(keys[np.argsort(-counts, kind="stable")[:most]])


def occurrence_matrix(occurrences: Occurrences, known: Ids) -> csr_array:
    """The matrix (texts, known) with ones where a text has the n-gram. known: sorted keys."""
    rows, columns = occurrences.among(known)
    where = rows.astype(np.int32), columns.astype(np.int32)  # liblinear only takes int32
    return csr_array((np.ones(len(rows)), where), shape=(occurrences.texts, len(known)))


def log_count_ratio(matrix: csr_array, labels: Labels) -> Floats:
    """The log-count ratio r = log((p / |p|) / (q / |q|)) of each feature, (F,) (Wang and Manning 2012, section 2.1).

    p and q count the texts of class 1 and 0 with the feature, plus 1.

    matrix: (N, F) of zeros and ones; labels: (N,) of 0 and 1.
    """
    p, q = (_SMOOTHING + matrix.T @ (labels == label).astype(np.float64) for label in (1, 0))
    ratio: Floats = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


def weighted(matrix: csr_array, ratio: Floats) -> csr_array:
    """The matrix with each column multiplied by its ratio."""
    product = matrix.copy()
    product.data = ratio[product.indices]
    return product


def regression(
    matrix: csr_array, labels: Labels, strength: float, factors: Floats | None = None
) -> tuple[Floats, LogisticRegression]:
    """The ratios (F,), and the regression on the matrix that they weight.

    matrix, labels: as in `log_count_ratio`, both labels occur; strength: the inverse of the regularization's; factors:
    (N,) of each text's loss, None for 1.
    """
    ratio = log_count_ratio(matrix, labels)
    model = LogisticRegression(C=strength, solver="liblinear", dual=True, random_state=0, max_iter=1000)
    model.fit(weighted(matrix, ratio), labels, factors)
    return ratio, model


def margins(
    matrix: csr_array, labels: NDArray[Any], classes: int, strength: float, factors: Floats | None = None
) -> tuple[Floats, Floats]:
    """Weights (F, K) and biases (K,) that give each class's logit. strength, factors: as in `regression`."""
    return one_against_rest(partial(_margin, matrix, strength, factors), matrix.shape[1], labels, classes)


def one_against_rest(
    fit: Callable[[Labels], tuple[Floats, float]], width: int, labels: NDArray[Any], classes: int
) -> tuple[Floats, Floats]:
    """Weights (F, K) and biases (K,) that give each class's logit: one regression, or with K > 2 one against the rest.

    fit: the weights (F,) and the bias of a regression on labels of 0 and 1, both of which occur; width: F. A class that
    all texts have, or none, gets the logit of its smoothed frequency.
    """
    if classes == 2:
        weight, bias = _fitted(fit, width, (labels == 1).astype(np.int8))
        return np.stack((-weight, weight), axis=1) / 2, np.array([-bias, bias]) / 2
    each = [_fitted(fit, width, (labels == number).astype(np.int8)) for number in range(classes)]
    return np.stack([weight for weight, _ in each], axis=1), np.array([bias for _, bias in each])


def _fitted(fit: Callable[[Labels], tuple[Floats, float]], width: int, labels: Labels) -> tuple[Floats, float]:
    ones = int(labels.sum())
    if not width or ones in (0, len(labels)):
        return np.zeros(width), float(np.log((ones + _SMOOTHING) / (len(labels) - ones + _SMOOTHING)))
    return fit(labels)


def _margin(matrix: csr_array, strength: float, factors: Floats | None, labels: Labels) -> tuple[Floats, float]:
    ratio, model = regression(matrix, labels, strength, factors)
    return ratio * model.coef_[0], float(model.intercept_[0])


def _repeated(texts: Iterable[NDArray[Any]]) -> list[int]:
    """The number of each text among the different ones, in the order in which they occur."""
    seen: dict[bytes, int] = {}
    return [seen.setdefault(hashlib.blake2b(text.tobytes(), digest_size=16).digest(), len(seen)) for text in texts]


def folds_of_blocks(
    labels: NDArray[Any], folds: int, block: int, seed: int, texts: Iterable[NDArray[Any]] = ()
) -> Iterator[NDArray[np.bool_]]:
    """Masks (N,) of the rows of each fold, which together are all rows.

    `block` neighbouring rows stay together, and blocks of like labels are spread over the folds. texts: the ids of each
    row; of blocks of 1, equal ones stay together. Raises UserError when there is a single block: each fold is scored by
    what was learnt from the others.
    """
    number = np.arange(len(labels)) // block
    if block == 1 and (same := _repeated(texts)):
        number = np.array(same)
    if number.max() == 0:
        raise UserError(f"train.wide_block is {block:,}, but there are {len(labels):,} texts: lower it")
    means = np.bincount(number, labels) / np.bincount(number)
    order = np.lexsort((np.random.default_rng(seed).permutation(len(means)), means))
    fold = np.empty(len(means), dtype=np.int64)
    fold[order] = np.arange(len(means)) % folds
    return (fold[number] == each for each in range(folds))
