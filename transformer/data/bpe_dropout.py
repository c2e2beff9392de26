"""BPE-dropout: training sees a new segmentation of each word every epoch (Provilkov, Emelianenko and Voita 2020).

The encoded store contains one segmentation. Its pieces are split into characters here and merged again with random
merges dropped, so the store stays the same and a row's segmentation depends only on seed, epoch and row.
"""

import json
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transformer.data.vocabulary import BYTES, SPACE, Ids, Vocabulary, read_bpe_dropout, read_vocabularies

_MOST_STATES = 500_000  # cached per sampler, about 350 MB: those of Multi30k's first three epochs
_LONGEST = 50  # characters of a word whose states are cached: longer ones, in scripts without spaces, do not recur
_ANY, _UNKNOWN = -1, 4


class Column(Protocol):
    """Encoded sequences by row, like `EncodedColumn`."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Ids: ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids per sequence."""


class BpeDropout:
    """New segmentations of every side of the training split, per epoch."""

    def __init__(self, samplers: Mapping[str, "MergeSampler"], seed: int) -> None:
        self._samplers, self._seed = samplers, seed

    @classmethod
    def open(cls, vocab: Path, seed: int) -> Self | None:
        """Open with the probability that build_vocab recorded next to the vocabularies; None if it is 0."""
        dropout = read_bpe_dropout(vocab)
        if not dropout:
            return None
        sides = {side: (each.tokenizer.to_str(), each) for side, each in read_vocabularies(vocab).items()}
        # Sides with a shared vocabulary share a sampler, whose cache dominates memory.
        samplers = {content: MergeSampler(each, dropout) for content, each in dict(sides.values()).items()}
        return cls({side: samplers[content] for side, (content, _) in sides.items()}, seed)

    def column(self, side: str, stored: Column, epoch: int, *, longest: int) -> "Resegmented":
        """Return an epoch's view of a stored column.

        longest: the model's positions. A text that fits as stored is not truncated because its new segmentation is
        longer.
        """
        number = sorted(self._samplers).index(side)
        return Resegmented(stored, self._samplers[side], (self._seed, epoch, number), longest)


class Resegmented:
    """A column whose rows are resegmented, seeded by the column's seed and the row number."""

    def __init__(self, stored: Column, sampler: "MergeSampler", seed: tuple[int, ...], longest: int) -> None:
        self._stored, self._sampler, self._seed, self._longest = stored, sampler, seed, longest

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, row: int) -> Ids:
        stored = self._stored[row]
        drawn = self._sampler(stored, np.random.default_rng((*self._seed, row)))
        return stored if len(stored) <= self._longest < len(drawn) else drawn

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Lengths of the stored segmentation, which has the fewest pieces: accurate enough for batching."""
        return self._stored.lengths


@dataclass(slots=True)
class _State:
    """A partially merged word, between characters and pieces."""

    pieces: tuple[int, ...]
    merges: list[tuple[int, int]]
    """Possible merges in BPE order: position of the left piece, id of the merged one."""
    following: list["_State | None"]
    """The state after each of these merges, once visited."""
    path: list["_State"] = field(default_factory=list)
    """This state and its successors when no merge is dropped, once walked; the last one has no merges."""


class _Draws:
    """The number of merges dropped at each step of a row. A step merges or ends a word: at most one per character."""

    def __init__(self, generator: np.random.Generator, survival: float, steps: int) -> None:
        numbers = generator.geometric(survival, steps) - 1
        places = np.flatnonzero(numbers)
        self._drops: list[tuple[int, int]] = list(zip(places.tolist(), numbers[places].tolist(), strict=True))
        self._drops.append((steps, 0))
        self._drops.reverse()
        self._position = 0

    def until_drop(self) -> int:
        """Number of steps before the next one that drops a merge."""
        return self._drops[-1][0] - self._position

    def pass_over(self, steps: int) -> None:
        """Skip steps without dropped merges."""
        self._position += steps

    def take_drop(self) -> int:
        """Return the next nonzero number and move past its step."""
        place, number = self._drops.pop()
        self._position = place + 1
        return number


class MergeSampler:
    """Samples segmentations by algorithm 1 of Provilkov et al.: at each step, every possible merge may be dropped.

    Only the best remaining merge matters, so one number per step suffices: how many of the best are dropped. It is
    mostly 0, and words follow the same paths again and again, so the paths are cached.
    """

    def __init__(self, vocabulary: Vocabulary, dropout: float) -> None:
        """vocabulary: a BPE vocabulary; dropout: from 0 (its own segmentation) to 1 (single characters)."""
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
        classes = [_classes(name) if ids[name] in merged or len(name) == 1 else (_ANY, _ANY) for name in names]
        self._classes = np.array(classes)
        self._classes[vocabulary.unknown_id] = _UNKNOWN  # most of a vocabulary's unknown text is symbols
        values = {byte: value for value, byte in enumerate(BYTES)}
        self._bytes = np.array([values.get(name, -1) for name in names])
        self._survival = max(1 - dropout, np.finfo(float).tiny)
        self._states: dict[tuple[int, ...], _State] = {}
        self._words: dict[tuple[int, ...], _State] = {}

    def __call__(self, ids: Ids, generator: np.random.Generator) -> Ids:
        """Resample the segmentation of an encoded text; the begin and end tokens stay."""
        inner = ids[1:-1]
        draws = _Draws(generator, self._survival, int(self._sizes[inner].sum()))
        classes = self._classes[inner]
        self._classify_spelt(inner, classes)
        left, right = classes[:-1, 1], classes[1:, 0]
        other_class = (left != right) & (left != _ANY) & (right != _ANY)
        starts = (np.flatnonzero(self._starts[inner[1:]] | other_class) + 1).tolist()
        pieces = inner.tolist()
        result = [int(ids[0])]
        for start, end in zip([0, *starts], [*starts, len(pieces)], strict=True):
            result += self._drawn(self._word(tuple(pieces[start:end])), draws)
        result.append(int(ids[-1]))
        return np.array(result, dtype=np.int64)

    def _classify_spelt(self, ids: Ids, classes: NDArray[np.int64]) -> None:
        """Give each byte piece the class of the character that it is a part of."""
        values = self._bytes[ids]
        start = 0
        for place in np.flatnonzero(values >= 0).tolist():
            if place < start:
                continue
            first = int(values[place])
            start = place + (1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4)
            spelt = values[place:start]
            with suppress(ValueError):  # a character cut off at the text's end has none
                classes[place:start] = _classes(bytes(spelt.tolist()).decode())

    def _drawn(self, state: _State, draws: "_Draws") -> tuple[int, ...]:
        """Sample the pieces of a word from its initial state."""
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
        """Return the initial state of a word, as `vocabulary.subword` splits texts into words: single characters."""
        state = self._words.get(pieces)
        if state is None:
            state = self._state(tuple(c for piece in pieces for c in self._characters[piece]))
            if self._keeps(state):
                self._words[pieces] = state
        return state

    def _walk(self, state: _State) -> list[_State]:
        path = [state]
        while path[-1].following:
            path.append(path[-1].following[0] or self._merge(path[-1], 0))
        if self._keeps(state):
            state.path = path
        return path

    def _merge(self, state: _State, number: int) -> _State:
        position, piece = state.merges[number]
        following = self._state((*state.pieces[:position], piece, *state.pieces[position + 2 :]))
        if self._keeps(state):
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
            if self._keeps(state):
                self._states[pieces] = state
        return state

    def _keeps(self, state: _State) -> bool:
        return len(self._states) < _MOST_STATES and int(self._sizes[list(state.pieces)].sum()) <= _LONGEST


def _classes(name: str) -> tuple[int, int]:
    """Return the classes of a piece's first and last character: letter or mark, number, other; any for a ▁ alone."""
    text = name.removeprefix(SPACE)
    if not text:
        return _ANY, _ANY
    first, last = ("LMN".find(unicodedata.category(character)[0]) for character in (text[0], text[-1]))
    return (0 if first == 1 else first) + 1, (0 if last == 1 else last) + 1
