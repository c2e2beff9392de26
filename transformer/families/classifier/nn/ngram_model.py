"""N-gram classifier in NumPy: a text's n-grams, and the direction of its document vector, add to the logits."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.families.classifier.nn.config import ClassifierConfig, NgramParams
from transformer.families.classifier.nn.ngrams import Ids, Occurrences, ids_of
from transformer.families.classifier.nn.vectors import ONE_CORE, Background, NgramVectors

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
