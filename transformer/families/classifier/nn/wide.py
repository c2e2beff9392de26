"""The wide branch: a table of n-grams with a weight for each class, added to the network's logits.

Cheng et al. 2016, "Wide & Deep Learning". It is NumPy and outside the network, so every engine answers the same.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.core.files import atomic_write
from transformer.families.classifier.nn.ngrams import Ids, Occurrences, ids_of
from transformer.families.classifier.nn.vectors import ONE_CORE, Background, NgramVectors

WIDE = "wide.npz"
"""The branch's file, beside the network's weights."""
Floats = NDArray[np.floating[Any]]
_MORE = ("vector_", "latent_")
"""What a branch with vectors has besides, and one with the latent directions of older versions."""


class Contribution(NamedTuple):
    """What one n-gram adds."""

    ids: list[int]
    weights: Floats
    """(K,): to the logit of each class."""


class WideBranch:
    """Logits from the n-grams that occur in a text, each counted once."""

    def __init__(
        self, keys: Ids, weights: Floats, bias: Floats, *, size: int, longest: int, vectors: NgramVectors | None = None
    ) -> None:
        """keys: (F,), sorted, as in `ngram_keys`; weights: (F, K); bias: (K,); size: of the vocabulary."""
        self.keys, self.weights, self.bias, self.size, self.longest = keys, weights, bias, size, longest
        self.vectors = vectors

    def logits(self, sequences: Sequence[Ids]) -> NDArray[np.float64]:
        """(N, K) for whole texts, with begin and end token, summed in float64."""
        rows, places = Occurrences.of(sequences, self.size, self.longest).among(self.keys)
        logits = self._sums(self.weights, rows, places, len(sequences)) + self.bias
        if self.vectors is not None and len(sequences):
            each = np.split(places, np.searchsorted(rows, np.arange(1, len(sequences))))
            with ONE_CORE:
                logits += np.stack([self.vectors.logits(own) for own in each])
        return logits

    def contributions(self, ids: Ids) -> list[Contribution]:
        """What each known n-gram of a text adds, in the order of their keys."""
        _, places = Occurrences.of([ids], self.size, self.longest).among(self.keys)
        weights = self.weights[places]
        if self.vectors is not None:
            with ONE_CORE:
                weights = weights + self.vectors.parts(places)
        return [
            Contribution(ids_of(int(self.keys[place]), self.size), weights[row]) for row, place in enumerate(places)
        ]

    def heaviest(self, number: int, count: int) -> list[Contribution]:
        """The at most `count` n-grams that add most to the logit of class `number` in a text that is like all, heaviest
        first.
        """
        weights = self.weights
        if self.vectors is not None:
            weights = weights.copy()
            weights[self.vectors.places] += self.vectors.weights
        order = np.argsort(-weights[:, number], kind="stable")[:count]
        return [Contribution(ids_of(int(self.keys[place]), self.size), weights[place]) for place in order]

    def _sums(self, weights: Floats, rows: Ids, places: Ids, texts: int) -> NDArray[np.float64]:
        """The sums (N, K) over the n-grams of each text."""
        sums = [np.bincount(rows, weights[places, number], minlength=texts) for number in range(len(self.bias))]
        return np.stack(sums, axis=1)

    def save(self, folder: Path) -> None:
        """Write the branch into a folder, with the same bytes each time."""
        vectors = {}
        if self.vectors is not None:
            vectors = self.vectors._asdict()
            background = vectors.pop("background")
            vectors |= {"shift": background.shift, "matrix": background.matrix}
        with atomic_write(folder / WIDE) as stream:
            np.savez(
                stream,
                allow_pickle=False,
                keys=self.keys,
                weights=self.weights.astype(np.float32),
                bias=self.bias.astype(np.float32),
                size=np.array(self.size),
                longest=np.array(self.longest),
                **{f"vector_{name}": values for name, values in vectors.items()},
            )


def lead_of(weights: Floats, number: int) -> Any:
    """The lead of class `number` over the mean of the others: (..., K) -> (...)."""
    others = weights.sum(axis=-1) - weights[..., number]
    return weights[..., number] - others / (weights.shape[-1] - 1)


def read_wide(folder: Path, *, longest: int, vectors: int = 0, size: int, classes: int) -> WideBranch | None:
    """The branch in a folder; None if `longest` is 0.

    longest: of its n-grams; vectors: their dimensions; size: of the vocabulary. Raises UserError when the file is
    missing, broken or another model's.
    """
    if not longest:
        return None
    path = folder / WIDE
    try:
        with np.load(path, allow_pickle=False) as file:
            keys, weights, bias = file["keys"], file["weights"], file["bias"]
            along = _vectors(file) if vectors else None
            more = not vectors and any(name.startswith(_MORE) for name in file.files)
            found = int(file["size"]), int(file["longest"]), *bias.shape, *weights.shape, keys.dtype.kind
    except (ValueError, TypeError, KeyError, OSError, EOFError, BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} cannot be read ({reason}): run `dvc repro` to make it again") from error
    fitting = size, longest, classes, len(keys), classes, "i"
    if found != fitting or more or (along is not None and not _fit(along, vectors, classes, len(keys))):
        raise UserError(f"{path} belongs to another model: run `dvc repro` to make it again")
    return WideBranch(keys, weights, bias, size=size, longest=longest, vectors=along)


def _vectors(file: Mapping[str, NDArray[Any]]) -> NgramVectors:
    background = Background(file["vector_shift"], file["vector_matrix"])
    places, vectors, slopes, weights = (file[f"vector_{name}"] for name in ("places", "vectors", "slopes", "weights"))
    return NgramVectors(places, vectors, background, slopes, weights)


def _fit(found: NgramVectors, most: int, classes: int, keys: int) -> bool:
    """Whether the arrays belong together; a corpus with few directions has shorter vectors than it was asked for."""
    arrays = found.places, found.vectors, found.slopes, found.weights, found.background.matrix, found.background.shift
    if [each.dtype.kind for each in arrays] != [*"iiffff"] or found.vectors.ndim != 2:
        return False
    count, size = found.vectors.shape
    expected = (count,), (count, size), (size, classes), (count, classes), (size, size), (size,)
    ascending = np.diff(found.places, prepend=-1, append=keys) > 0 if found.places.ndim == 1 else np.array(False)
    return tuple(each.shape for each in arrays) == expected and size <= most and bool(ascending.all())
