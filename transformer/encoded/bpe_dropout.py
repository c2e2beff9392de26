"""BPE-dropout: training sees each word in other pieces every time (Provilkov, Emelianenko and Voita 2020).

The encoded store holds one segmentation. Its pieces are joined here to characters and merged again, with merges left
out by chance, so that the store stays the same and a row's segmentation depends on nothing but seed, epoch and row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transformer.encoded.vocabulary import SPACE, Ids, Vocabulary, read_bpe_dropout, read_vocabularies

_MOST_STATES = 500_000  # kept by a sampler, about 350 MB: those of Multi30k's first three epochs


class Column(Protocol):
    """Encoded sequences by row, as `EncodedColumn` has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Ids: ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each sequence."""


class BpeDropout:
    """Fresh segmentations of every side of the training split."""

    def __init__(self, samplers: Mapping[str, "MergeSampler"], seed: int) -> None:
        self._samplers, self._seed = samplers, seed

    @classmethod
    def open(cls, vocab: Path, seed: int) -> Self | None:
        """As build_vocab noted it in the folder of the vocabularies; None where nothing is dropped."""
        dropout = read_bpe_dropout(vocab)
        if not dropout:
            return None
        return cls({side: MergeSampler(each, dropout) for side, each in read_vocabularies(vocab).items()}, seed)

    def column(self, side: str, stored: Column, epoch: int) -> "Resegmented":
        """An epoch's view of a stored column."""
        number = sorted(self._samplers).index(side)
        return Resegmented(stored, self._samplers[side], (self._seed, epoch, number))


class Resegmented:
    """A column whose rows are segmented afresh, by a seed of its own and the row's number."""

    def __init__(self, stored: Column, sampler: "MergeSampler", seed: tuple[int, ...]) -> None:
        self._stored, self._sampler, self._seed = stored, sampler, seed

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, row: int) -> Ids:
        return self._sampler(self._stored[row], np.random.default_rng((*self._seed, row)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Those of the stored segmentation, which has the fewest pieces: close enough to make batches by."""
        return self._stored.lengths


@dataclass(slots=True)
class _State:
    """A word on its way from characters to pieces."""

    pieces: tuple[int, ...]
    merges: list[tuple[int, int]]
    """What can be merged, in the order of BPE: position of the left piece, id of the merged one."""
    following: list["_State | None"]
    """The state after each of these merges, once it has been there."""
    path: list["_State"] = field(default_factory=list)
    """This state and those after it where no merge is dropped, once it has been walked; the last has no merges."""


class _Draws:
    """The numbers of dropped merges at each step of a row: a step merges or ends a word, so characters are enough."""

    def __init__(self, generator: np.random.Generator, survival: float, steps: int) -> None:
        numbers = generator.geometric(survival, steps) - 1
        places = np.flatnonzero(numbers)
        self._drops: list[tuple[int, int]] = list(zip(places.tolist(), numbers[places].tolist(), strict=True))
        self._drops.append((steps, 0))
        self._drops.reverse()
        self._position = 0

    def until_drop(self) -> int:
        """Steps until one that drops something."""
        return self._drops[-1][0] - self._position

    def pass_over(self, steps: int) -> None:
        """Go on by steps that drop nothing."""
        self._position += steps

    def take_drop(self) -> int:
        """The next number that is not 0, and go on behind it."""
        place, number = self._drops.pop()
        self._position = place + 1
        return number


class MergeSampler:
    """Draws segmentations by algorithm 1 of Provilkov et al.: every possible merge is dropped anew at each step.

    Only the best merge that is left counts, so one number a step decides: how many of the best are dropped. It is
    mostly 0, and words go the same ways again and again, which are kept.
    """

    def __init__(self, vocabulary: Vocabulary, dropout: float) -> None:
        """vocabulary: a BPE vocabulary; dropout: from 0, its own segmentation, to 1, single characters."""
        model = json.loads(vocabulary.tokenizer.to_str())["model"]
        ids: dict[str, int] = model["vocab"]
        self._merges = {
            (ids[left], ids[right]): (rank, ids[left + right]) for rank, (left, right) in enumerate(model["merges"])
        }
        merged = {piece for _, piece in self._merges.values()}
        names = sorted(ids, key=ids.__getitem__)
        self._characters = [
            tuple(ids[character] for character in name) if ids[name] in merged else (ids[name],) for name in names
        ]
        self._sizes = np.array([len(characters) for characters in self._characters])
        self._starts = np.array([name.startswith(SPACE) for name in names])
        self._survival = max(1 - dropout, np.finfo(float).tiny)
        self._states: dict[tuple[int, ...], _State] = {}
        self._words: dict[tuple[int, ...], _State] = {}

    def __call__(self, ids: Ids, generator: np.random.Generator) -> Ids:
        """Another segmentation of an encoded text between its begin and end token."""
        inner = ids[1:-1]
        draws = _Draws(generator, self._survival, int(self._sizes[inner].sum()))
        starts = (np.flatnonzero(self._starts[inner[1:]]) + 1).tolist()
        pieces = inner.tolist()
        result = [int(ids[0])]
        for start, end in zip([0, *starts], [*starts, len(pieces)], strict=True):
            result += self._drawn(self._word(tuple(pieces[start:end])), draws)
        result.append(int(ids[-1]))
        return np.array(result, dtype=np.int64)

    def _drawn(self, state: _State, draws: "_Draws") -> tuple[int, ...]:
        """The pieces of a word at the end of its way."""
        while True:
            path = state.path or self._walk(state)
            undropped = draws.until_drop()
            if undropped >= len(path) - 1:
                draws.pass_over(len(path) - 1)
                return path[-1].pieces
            state = path[undropped]
            dropped = draws.take_drop()
            if dropped >= len(state.following):
                return state.pieces
            state = state.following[dropped] or self._merge(state, dropped)

    def _word(self, pieces: tuple[int, ...]) -> _State:
        """The state of single characters of a word; no merge reaches over its beginning, the ▁."""
        state = self._words.get(pieces)
        if state is None:
            state = self._state(tuple(c for piece in pieces for c in self._characters[piece]))
            if not self._full:
                self._words[pieces] = state
        return state

    def _walk(self, state: _State) -> list[_State]:
        path = [state]
        while path[-1].following:
            path.append(path[-1].following[0] or self._merge(path[-1], 0))
        if not self._full:
            state.path = path
        return path

    def _merge(self, state: _State, number: int) -> _State:
        position, piece = state.merges[number]
        following = self._state((*state.pieces[:position], piece, *state.pieces[position + 2 :]))
        if not self._full:
            state.following[number] = following
        return following

    def _state(self, pieces: tuple[int, ...]) -> _State:
        state = self._states.get(pieces)
        if state is None:
            found = [
                (*self._merges[pair], position)
                for position, pair in enumerate(pairwise(pieces))
                if pair in self._merges
            ]
            merges = [(position, piece) for rank, piece, position in sorted(found, key=lambda m: (m[0], m[2]))]
            state = _State(pieces, merges, [None] * len(merges))
            if not self._full:
                self._states[pieces] = state
        return state

    @property
    def _full(self) -> bool:
        return len(self._states) >= _MOST_STATES
