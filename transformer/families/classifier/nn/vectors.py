"""Document vectors from n-gram vectors, with NumPy only.

Document vectors that predict n-grams (Li et al. 2016; with cosine similarity, Thongtan and Phienthrakul 2019), fitted
by least squares instead of a sampled logistic loss, as in implicit feedback (Hu, Koren and Volinsky 2008, eq. 4). A new
text's vector is thus an exact solution, independent of a number of gradient steps.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Floats32 = NDArray[np.float32]
_NEGATIVES = 5.0
"""Negative samples per n-gram of the text, as in Li et al."""
_RIDGE = 0.11
"""L2 penalty per n-gram of the text; with six times as much, vectors collapse."""


class OneCore:
    """Context in which BLAS uses one core: the systems of equations are small, and more cores take twice the time.

    The limit is global to the process: the first thread to enter sets it, the last to leave lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limit = _blas().limit(limits=1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()


ONE_CORE = OneCore()


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def on_cores(number: int) -> Any:
    """Return a context that limits BLAS to this many cores; by default it takes all, which changes the last bits."""
    return _blas().limit(limits=number)


@dataclass(frozen=True)
class Background:
    """Statistics of random negative n-grams for inferring a document vector."""

    shift: Floats32
    """(D,): weighted mean of the negatives, times their number per positive."""
    matrix: Floats32
    """(D, D): weighted second moments, times the same number, plus the ridge."""

    @classmethod
    def of(cls, vectors: Floats32, weights: NDArray[Any]) -> "Background":
        """Compute the statistics of unit vectors (M, D) that occur in proportion to `weights`, (M,)."""
        shares = _single(weights / max(weights.sum(), 1))
        moments = (vectors.T * shares) @ vectors
        matrix = _NEGATIVES * moments + _RIDGE * np.eye(vectors.shape[1])
        return cls(_single(_NEGATIVES * (shares @ vectors)), _single(matrix))

    def regressed(self, own: Floats32) -> Floats32:
        """Infer the vector u whose dot products are closest to 1 with `own` vectors (P, D), and to -1 with negatives.

        u = (O'O + P M)^-1 (sum of O - P s), with matrix M and shift s. Returns (D,), not normalised; zeros if P is 0.
        """
        return self.solved(own, own.sum(axis=0) - len(own) * self.shift) if len(own) else np.zeros_like(self.shift)

    def solved(self, own: Floats32, right: Floats32) -> Floats32:
        """Return (O'O + P M)^-1 right, for right-hand sides (D,) or (D, R); P is at least 1."""
        count, size = own.shape
        if 2 * count >= size:
            return _solved(own.T @ own + count * self.matrix, right)
        # Woodbury's identity: a system of P equations in place of D.
        mapped, before = own @ self._inverse, self._inverse @ right
        inner = mapped @ own.T + count * np.eye(count, dtype=np.float32)
        return _single((before - mapped.T @ _solved(inner, own @ before)) / count)

    def usual(self) -> Floats32:
        """Return O'O / P + M of an average document."""
        return _single(self.matrix + (self.matrix - _RIDGE * np.eye(len(self.shift))) / _NEGATIVES)

    @cached_property
    def _inverse(self) -> Floats32:
        return _solved(self.matrix, np.eye(len(self.matrix), dtype=np.float32))


def _solved(matrix: Floats32, right: Floats32) -> Floats32:
    return _single(np.linalg.solve(matrix, right))


def _single(values: NDArray[Any]) -> Floats32:
    return values.astype(np.float32, copy=False)


def unit(vectors: Floats32) -> Floats32:
    """Normalise rows to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return _single(vectors / np.where(lengths, lengths, 1))


class NgramVectors(NamedTuple):
    """N-gram vectors, and the weights of the document vector's direction in the logits."""

    places: NDArray[np.int32]
    """(M,): indices into the model's keys, ascending."""
    vectors: NDArray[np.int8]
    """(M, D): directions of the vectors, in 8 bits."""
    background: Background
    """Background statistics for inferring a document vector."""
    slopes: Floats32
    """(D, K): weights of a document's direction in the class logits."""
    weights: Floats32
    """(M, K): contribution of each n-gram to the logits in an average document of median length."""

    def own(self, places: NDArray[np.integer[Any]]) -> Floats32:
        """Return the directions (P, D) of the n-grams of a text that have a vector. places: in the model's keys."""
        return directions(self.vectors[self.rows(places)])

    def rows(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the row numbers of these vectors, (P,)."""
        if not len(self.places):
            return np.empty(0, dtype=np.int64)
        rows = np.searchsorted(self.places, places).clip(max=len(self.places) - 1)
        found: NDArray[np.int64] = rows[self.places[rows] == places]
        return found

    def logits(self, places: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return what the direction of a text with these n-grams adds to the class logits, (K,)."""
        direction = unit(self.background.regressed(self.own(places)))
        added: NDArray[np.float64] = direction.astype(np.float64) @ self.slopes
        return added

    def parts(self, places: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return each n-gram's share of `logits`, (P, K), given the others; 0 for n-grams without a vector."""
        parts = np.zeros((len(places), self.slopes.shape[1]))
        own = self.own(places)
        if len(own):
            length = np.linalg.norm(self.background.regressed(own))
            along = self.background.solved(own, self.slopes)
            parts[np.isin(places, self.places)] = (own - self.background.shift) @ along / (length or 1)
        return parts


def directions(vectors: NDArray[np.int8]) -> Floats32:
    """Dequantize vectors from 8 bits to unit vectors."""
    return unit(vectors.astype(np.float32))


def in_8_bits(vectors: Floats32) -> NDArray[np.int8]:
    """Quantize directions (M, D) to 8 bits: the largest component of each becomes 127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    rounded: NDArray[np.int8] = np.rint(vectors / np.where(largest, largest, 1) * 127).astype(np.int8)
    return rounded
