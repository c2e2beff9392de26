"""BPE-dropout: training sees each word in other pieces every time (Provilkov, Emelianenko and Voita 2020).

The encoded store holds one segmentation. Its pieces are joined here to characters and merged again, with merges left
out by chance, so that the store stays the same and a row's segmentation depends on nothing but seed, epoch and row.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transformer.text.vocabulary import SPACE, Ids, Vocabulary, read_bpe_dropout, read_vocabularies

_MOST_STATES = 200_000  # of a sampler's memory, about 100 MB; then it forgets all and begins again


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


class _State(NamedTuple):
    """A word on its way from characters to pieces."""

    pieces: tuple[int, ...]
    merges: list[tuple[int, int]]
    """What can be merged, in the order of BPE: position of the left piece, id of the merged one."""
    following: list["_State | None"]
    """The state after each of these merges, once it has been there."""


class MergeSampler:
    """Draws segmentations by algorithm 1 of Provilkov et al.: every possible merge is dropped anew at each step.

    Only the best merge that is left counts, so one number a step decides: how many of the best are dropped. Words
    go the same ways again and again, which are kept.
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
        # A step merges or ends a word, so a word has no more steps than characters.
        draws = iter((generator.geometric(self._survival, int(self._sizes[inner].sum())) - 1).tolist())
        bounds = [0, *(np.flatnonzero(self._starts[inner[1:]]) + 1).tolist(), len(inner)]
        pieces = inner.tolist()
        result = [int(ids[0])]
        for start, end in zip(bounds[:-1], bounds[1:], strict=True):
            state = self._word(tuple(pieces[start:end]))
            while state.following:
                dropped = next(draws)
                if dropped >= len(state.following):
                    break
                state = state.following[dropped] or self._merge(state, dropped)
            result += state.pieces
        result.append(int(ids[-1]))
        return np.array(result, dtype=np.int64)

    def _word(self, pieces: tuple[int, ...]) -> _State:
        """The state of single characters of a word; no merge reaches over its beginning, the ▁."""
        if pieces not in self._words:
            if len(self._states) > _MOST_STATES:
                self._states.clear()
                self._words.clear()
            self._words[pieces] = self._state(tuple(c for piece in pieces for c in self._characters[piece]))
        return self._words[pieces]

    def _merge(self, state: _State, number: int) -> _State:
        position, piece = state.merges[number]
        following = self._state((*state.pieces[:position], piece, *state.pieces[position + 2 :]))
        state.following[number] = following
        return following

    def _state(self, pieces: tuple[int, ...]) -> _State:
        if pieces not in self._states:
            found = [
                (*self._merges[pair], position)
                for position, pair in enumerate(zip(pieces, pieces[1:], strict=False))
                if pair in self._merges
            ]
            merges = [(position, piece) for rank, piece, position in sorted(found, key=lambda m: (m[0], m[2]))]
            self._states[pieces] = _State(pieces, merges, [None] * len(merges))
        return self._states[pieces]
