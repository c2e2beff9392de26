"""N-gram classifier in NumPy: a text's n-grams, and the direction of its document vector, add to the logits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from transformer.families.classifier.interface import ClassifierConfig, NgramParams

Ids = NDArray[np.int64]


def ngram_keys(ids: Ids, size: int, longest: int) -> Ids:
    """Return the sorted distinct keys (M,) of a text's n-grams, n from 1 to `longest`.

    ids: below `size`, with begin and end token, which are excluded. A unigram's key is its id; the key of a longer
    n-gram is size * (key of all but its last id + 1) + last id, so no two n-grams share a key.
    """
    inner = ids[1:-1]
    keys = [inner]
    for length in range(2, longest + 1):
        keys.append(size * (keys[-1][:-1] + 1) + inner[length - 1 :])
    return np.unique(np.concatenate(keys))


def ids_of(key: int, size: int) -> list[int]:
    """Return the ids of the n-gram with this key."""
    ids = [key % size]
    while key >= size:
        key = key // size - 1
        ids.insert(0, key % size)
    return ids


class Occurrences(NamedTuple):
    """Occurrences of n-grams in texts."""

    rows: Ids
    """(M,): text numbers, ascending."""
    keys: Ids
    """(M,): n-gram keys, as in `ngram_keys`."""
    texts: int

    @classmethod
    def of(cls, sequences: Iterable[Ids], size: int, longest: int) -> Self:
        """Collect the occurrences in `sequences`; arguments as in `ngram_keys`."""
        keys = [ngram_keys(ids, size, longest) for ids in sequences]
        rows = np.repeat(np.arange(len(keys)), [len(row) for row in keys])
        return cls(rows, np.concatenate(keys) if keys else np.empty(0, dtype=np.int64), len(keys))

    def among(self, known: Ids) -> tuple[Ids, Ids]:
        """Return the occurrences of sorted `known` keys: text numbers and indices into `known`, (M',) each."""
        if not len(known):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        places = np.searchsorted(known, self.keys).clip(max=len(known) - 1)
        inside = known[places] == self.keys
        return self.rows[inside], places[inside]


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


Floats = NDArray[np.floating[Any]]
_VECTOR = "vector_"


class Contribution(NamedTuple):
    """The contribution of one n-gram."""

    ids: list[int]
    weights: Floats
    """(K,): added to the logit of each class."""


class NgramModel:
    """Computes logits from the n-grams of a text, each counted once."""

    def __init__(
        self, config: ClassifierConfig, keys: Ids, weights: Floats, bias: Floats, vectors: NgramVectors | None = None
    ) -> None:
        """keys: (F,), sorted, as in `ngram_keys`; weights: (F, K); bias: (K,)."""
        assert isinstance(config.model, NgramParams)
        self.config, self.keys, self.vectors = config, keys, vectors
        self.weights, self.bias = weights.astype(np.float32), bias.astype(np.float32)
        self._longest = config.model.ngrams
        self.positions, self.pad_id, self.classes = config.model.max_length, config.pad_id, config.classes

    def logits(self, sequences: Iterable[Ids]) -> NDArray[np.float64]:
        """Return logits (N, K) of whole texts with begin and end token, summed in float64; padding is ignored."""
        real = [ids[ids != self.pad_id] for ids in sequences]
        rows, places = Occurrences.of(real, self.config.size, self._longest).among(self.keys)
        logits = np.repeat(self.bias[None].astype(np.float64), len(real), axis=0)
        for number in range(self.classes):
            logits[:, number] += np.bincount(rows, self.weights[places, number], minlength=len(real))
        if self.vectors is not None and real:
            each = np.split(places, np.searchsorted(rows, np.arange(1, len(real))))
            with ONE_CORE:
                logits += np.stack([self.vectors.logits(own) for own in each])
        return logits

    def contributions(self, ids: Ids) -> list[Contribution]:
        """Return the contribution of each known n-gram of a text, in key order."""
        _, places = Occurrences.of([ids], self.config.size, self._longest).among(self.keys)
        weights: Floats = self.weights[places]
        if self.vectors is not None:
            with ONE_CORE:
                weights = weights + self.vectors.parts(places)
        return self._named(places, weights)

    def heaviest(self, number: int, count: int) -> list[Contribution]:
        """Return the `count` n-grams that add most to the logit of class `number` in an average document, in order."""
        weights = self.weights
        if self.vectors is not None:
            weights = weights.copy()
            weights[self.vectors.places] += self.vectors.weights
        places = np.argsort(-weights[:, number], kind="stable")[:count]
        return self._named(places, weights[places])

    def _named(self, places: Ids, weights: Floats) -> list[Contribution]:
        keys = self.keys[places].tolist()
        return [Contribution(ids_of(key, self.config.size), own) for key, own in zip(keys, weights, strict=True)]

    @property
    def parameters(self) -> int:
        """Number of fitted parameters, including those of the vectors."""
        return sum(values.size for name, values in self.state().items() if name not in ("keys", f"{_VECTOR}places"))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store, by name."""
        found: dict[str, NDArray[Any]] = {"keys": self.keys, "weights": self.weights, "bias": self.bias}
        if self.vectors is not None:
            own = self.vectors._asdict()
            background = own.pop("background")
            own |= {"shift": background.shift, "matrix": background.matrix}
            found |= {f"{_VECTOR}{name}": values for name, values in own.items()}
        return found

    @classmethod
    def from_state(cls, config: ClassifierConfig, state: Mapping[str, NDArray[Any]]) -> "NgramModel":
        """Rebuild a model from its `state`. Raises RuntimeError if that belongs to another configuration."""
        try:
            model = cls(config, state["keys"], state["weights"], state["bias"], _vectors(config, state))
        except KeyError as error:
            raise RuntimeError(f"it lacks {error}") from error
        _require_fit(model, state)
        return model


def _vectors(config: ClassifierConfig, state: Mapping[str, NDArray[Any]]) -> NgramVectors | None:
    assert isinstance(config.model, NgramParams)
    if not config.model.vectors:
        return None
    own = {name: state[f"{_VECTOR}{name}"] for name in ("places", "vectors", "slopes", "weights", "shift", "matrix")}
    return NgramVectors(background=Background(own.pop("shift"), own.pop("matrix")), **own)


def _require_fit(model: NgramModel, state: Mapping[str, NDArray[Any]]) -> None:
    """Raise RuntimeError unless the shapes match; vectors may be shorter than configured if there were few texts."""
    count, classes = len(model.keys), model.classes
    expected: dict[str, tuple[int, ...]] = {"keys": (count,), "weights": (count, classes), "bias": (classes,)}
    if (vectors := model.vectors) is not None:
        known, size = len(vectors.places), len(vectors.slopes)
        expected |= {"vector_places": (known,), "vector_vectors": (known, size), "vector_weights": (known, classes)}
        expected |= {"vector_slopes": (size, classes), "vector_shift": (size,), "vector_matrix": (size, size)}
    if {name: values.shape for name, values in state.items()} != expected:
        raise RuntimeError("its shapes do not fit together")


def lead_of(weights: Floats, number: int) -> Any:
    """Return the margin of class `number` over the mean of the others: (..., K) -> (...)."""
    others = weights.sum(axis=-1) - weights[..., number]
    return weights[..., number] - others / (weights.shape[-1] - 1)
