"""Vectors of texts from those of their n-grams. NumPy alone.

Document vectors that predict n-grams (Li et al. 2016; by their direction alone, Thongtan and Phienthrakul 2019), with
least squares in place of a sampled logistic loss, as in implicit feedback (Hu, Koren and Volinsky 2008, eq. 4). So the
vector of a new text is a solution, and not an end of gradient steps that depends on how many there were.
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
"""Random n-grams for each of the text's own, as Li et al."""
_RIDGE = 0.11
"""Weight of the vector's squared length for each of the text's n-grams; with six times as much, vectors collapse."""


class OneCore:
    """Within, one core solves a system of equations: they are small, and several need twice the time.

    BLAS has one limit for all threads of the process: the first to enter sets it, the last to leave lifts it.
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
    """A context in which BLAS has this many cores: by itself it takes all, and their number changes the last bits."""
    return _blas().limit(limits=number)


@dataclass(frozen=True)
class Background:
    """What a vector is regressed on besides its own: random others."""

    shift: Floats32
    """(D,): their weighted mean, times how many there are for each own."""
    matrix: Floats32
    """(D, D): their weighted second moments, times as many, and the ridge."""

    @classmethod
    def of(cls, vectors: Floats32, weights: NDArray[Any]) -> "Background":
        """That of unit vectors (M, D) that occur in proportion to `weights`, (M,)."""
        shares = _single(weights / max(weights.sum(), 1))
        moments = (vectors.T * shares) @ vectors
        matrix = _NEGATIVES * moments + _RIDGE * np.eye(vectors.shape[1])
        return cls(_single(_NEGATIVES * (shares @ vectors)), _single(matrix))

    def regressed(self, own: Floats32) -> Floats32:
        """The vector u whose products with its own vectors, (P, D), are as near 1, and with others -1, as can be.

        u = (O'O + P M)^-1 (the sum of O - P s), with matrix M and shift s: (D,), of any length; zeros without any own.
        """
        return self.solved(own, own.sum(axis=0) - len(own) * self.shift) if len(own) else np.zeros_like(self.shift)

    def solved(self, own: Floats32, right: Floats32) -> Floats32:
        """(O'O + P M)^-1 right, for right sides (D,) or (D, R); P is at least 1."""
        count, size = own.shape
        if 2 * count >= size:
            return _solved(own.T @ own + count * self.matrix, right)
        # Woodbury's identity: a system of P equations in place of D.
        mapped, before = own @ self._inverse, self._inverse @ right
        inner = mapped @ own.T + count * np.eye(count, dtype=np.float32)
        return _single((before - mapped.T @ _solved(inner, own @ before)) / count)

    def usual(self) -> Floats32:
        """O'O / P + M of a text whose own n-grams are like all."""
        return _single(self.matrix + (self.matrix - _RIDGE * np.eye(len(self.shift))) / _NEGATIVES)

    @cached_property
    def _inverse(self) -> Floats32:
        return _solved(self.matrix, np.eye(len(self.matrix), dtype=np.float32))


def _solved(matrix: Floats32, right: Floats32) -> Floats32:
    return _single(np.linalg.solve(matrix, right))


def _single(values: NDArray[Any]) -> Floats32:
    return values.astype(np.float32, copy=False)


def unit(vectors: Floats32) -> Floats32:
    """Rows of length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return _single(vectors / np.where(lengths, lengths, 1))


class NgramVectors(NamedTuple):
    """The n-grams that have a vector, and the regression on the direction of a text's."""

    places: NDArray[np.int32]
    """(M,): as places in the model's keys, ascending."""
    vectors: NDArray[np.int8]
    """(M, D): their directions, in 8 bits."""
    background: Background
    """Of texts."""
    slopes: Floats32
    """(D, K): of each class's logit along a text's direction."""
    weights: Floats32
    """(M, K): what each adds to the logits, in a text of the usual length whose n-grams are like all."""

    def own(self, places: NDArray[np.integer[Any]]) -> Floats32:
        """The directions (P, D) of the n-grams of a text that have one. places: in the model's keys."""
        return directions(self.vectors[self.rows(places)])

    def rows(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Which vectors those are, (P,)."""
        if not len(self.places):
            return np.empty(0, dtype=np.int64)
        rows = np.searchsorted(self.places, places).clip(max=len(self.places) - 1)
        found: NDArray[np.int64] = rows[self.places[rows] == places]
        return found

    def logits(self, places: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """What the direction of a text with these n-grams adds to the logit of each class, (K,)."""
        direction = unit(self.background.regressed(self.own(places)))
        added: NDArray[np.float64] = direction.astype(np.float64) @ self.slopes
        return added

    def parts(self, places: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """What each n-gram adds to `logits`, (P, K), the others as they are; those without a vector add nothing."""
        parts = np.zeros((len(places), self.slopes.shape[1]))
        own = self.own(places)
        if len(own):
            length = np.linalg.norm(self.background.regressed(own))
            along = self.background.solved(own, self.slopes)
            parts[np.isin(places, self.places)] = (own - self.background.shift) @ along / (length or 1)
        return parts


def directions(vectors: NDArray[np.int8]) -> Floats32:
    """What vectors in 8 bits stand for."""
    return unit(vectors.astype(np.float32))


def in_8_bits(vectors: Floats32) -> NDArray[np.int8]:
    """Directions (M, D) in 8 bits: the largest component of each becomes 127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    rounded: NDArray[np.int8] = np.rint(vectors / np.where(largest, largest, 1) * 127).astype(np.int8)
    return rounded
