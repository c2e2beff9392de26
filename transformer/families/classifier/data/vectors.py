"""Unsupervised n-gram vectors: an n-gram that is rare in labelled texts gets a vector near those it co-occurs with.

Three steps, each using the previous result: latent semantic analysis of the texts (Deerwester et al. 1990), a
regression of each n-gram on the texts that contain it, and one of each text on its n-grams (`nn/vectors.py`).
Further alternation gains little (docs/notes.md).
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.utils.extmath import randomized_svd

from transformer.core.observer import Observer
from transformer.families.classifier.data.naive_bayes import FEWEST, Floats
from transformer.families.classifier.nn.vectors import (
    ONE_CORE,
    Background,
    Floats32,
    NgramVectors,
    directions,
    in_8_bits,
    unit,
)

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
