"""Log probability of texts under a language model, and loss by position in the context.

A causal model yields log p(text), including the end token. A masked one has no such probability; each token is scored
given the others of its window, except those masked in the same pass: the pseudo-log-likelihood (Salazar et al. 2020)
with every `mask_stride`-th token masked at a time instead of one token of the text. Where windows overlap, a causal
model scores the tokens that are new in the later one; a masked model, which also uses right context, scores a token in
the window where it is farthest from a cut.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from transformer.core.observer import Observer
from transformer.data.store import Ids, padded, sorted_batches
from transformer.inference.search import Generator, SearchParams


class AnswerParams(SearchParams):
    """How texts are continued and scored."""

    stride: int | None = Field(ge=1)
    """Texts longer than the context are scored in windows that start this many tokens apart, so that most tokens have a
    long context (with `masked`, on both sides); null for windows that do not overlap."""
    memory_length: int | None = Field(ge=0, default=None)
    """`transformer_xl`: states remembered in evaluation and use; null for as many as in training."""
    hash_rounds: int | None = Field(ge=0, default=None)
    """`reformer`: rounds of hashing in evaluation and use; null for as many as in training, 0 for full attention."""
    mask_stride: int = Field(ge=2)
    """`masked`: tokens are scored in this many passes over a text, each of which masks every
    n-th token, n being this number."""


class AnsweringParams(AnswerParams, extra="ignore"):
    """The parameters of `evaluate` that inference needs, without those of scoring."""


Floats = NDArray[np.floating[Any]]


class Engine(Protocol):
    """A language model that scores tokens."""

    @property
    def causal(self) -> bool:
        """True if it predicts the next token; otherwise it predicts masked ones."""

    @property
    def positions(self) -> int:
        """Maximum context length, in tokens."""

    @property
    def pad_id(self) -> int:
        """Padding token id."""

    @property
    def mask_id(self) -> int:
        """Id of the mask token."""

    @property
    def generator(self) -> Generator:
        """Generator that continues texts with a causal model."""

    def scored(self, token_ids: Ids, places: Ids, targets: Ids) -> tuple[Floats, Ids]:
        """Return log probabilities (M,) of the targets (M,) at places (M,), and the most probable tokens there (M,).

        token_ids: (B, T), padded at the end; places: in the flattened token_ids (B * T,).
        """

    def log_probabilities(self, token_ids: Ids, places: Ids) -> Floats:
        """Return the log probabilities (M, V) of all tokens, at a few places; arguments as in `scored`."""

    def states(self, token_ids: Ids) -> Floats:
        """Return the states (B, T, C) of the last layer; values at padding are undefined."""


_TEXTS = 256  # texts whose windows are in memory at a time


class TextScore(NamedTuple):
    """Score of one text."""

    log_probability: float
    """In nats, summed over the tokens."""
    tokens: int
    """Number of predicted tokens, with a causal model including the end token."""
    right: int
    """Number of tokens that were the most probable ones."""


class Pass(NamedTuple):
    """One forward pass over a window of a text, and its targets."""

    text: int
    given: Ids
    """(T,): input ids."""
    places: Ids
    """(M,): indices of the targets in the window."""
    targets: Ids
    """(M,): target ids."""


class Scored(NamedTuple):
    """Scores of many texts."""

    texts: list[TextScore]
    nats: NDArray[np.float64]
    """(L,): summed negative log probability by position in the context."""
    counts: NDArray[np.float64]
    """(L,): number of predicted tokens by position."""
    squares: NDArray[np.float64]
    """(L,): summed squares of the log probabilities by position."""


def score(engine: Engine, sequences: Sequence[Ids], params: AnswerParams, observer: Observer) -> Scored:
    """Score encoded texts, from begin to end token. Rounded to 4 decimals (summation order)."""
    sums = np.zeros((len(sequences), 3))
    places = min(engine.positions, 1 << max(map(len, sequences), default=0).bit_length())
    nats, counts, squares = np.zeros(places), np.zeros(places), np.zeros(places)
    starts = range(0, len(sequences), _TEXTS)
    for start in observer.progress(starts, total=len(starts), what="score"):
        for each in _batches(engine, sequences[start : start + _TEXTS], start, params):
            values = np.stack((each.found, np.ones(len(each.found)), each.best == each.targets), axis=1)
            np.add.at(sums, each.owners, values)
            np.add.at(nats, each.places, -values[:, 0])
            np.add.at(counts, each.places, 1)
            np.add.at(squares, each.places, values[:, 0] ** 2)
    texts = [TextScore(round(float(total), 4), int(tokens), int(right)) for total, tokens, right in sums]
    return Scored(texts, nats, counts, squares)


class TokenScores(NamedTuple):
    """Scores of each of the N tokens of a text."""

    log_probabilities: NDArray[np.float64]
    """(N,): in nats."""
    best: Ids
    """(N,): the most probable tokens."""
    right: NDArray[np.bool_]
    """(N,): True where these are the text's tokens."""


def each_token(engine: Engine, sequences: Sequence[Ids], params: AnswerParams) -> list[TokenScores]:
    """Score each token of encoded texts, batched in an order that depends only on the model's context."""
    starts = range(0, len(sequences), _TEXTS)
    parts = (_batches(engine, sequences[start : start + _TEXTS], start, params) for start in starts)
    found = [each for part in parts for each in part]
    if not found:
        return []
    names = ("owners", "found", "best", "targets")
    owners, values, best, targets = (np.concatenate([getattr(each, name) for each in found]) for name in names)
    ends = np.cumsum(np.bincount(owners, minlength=len(sequences)))[:-1]
    own = np.split(np.argsort(owners, kind="stable"), ends)  # one pass over the tokens, however many texts there are
    return [TokenScores(values[rows], best[rows], best[rows] == targets[rows]) for rows in own]


class _Batch(NamedTuple):
    """Predicted tokens of a batch of passes."""

    owners: Ids
    """Text number of each token."""
    places: Ids
    """Position of each token in the context."""
    targets: Ids
    found: NDArray[np.float64]
    """Log probability of each token."""
    best: Ids
    """The most probable token at each position."""


def _batches(engine: Engine, sequences: Sequence[Ids], first: int, params: AnswerParams) -> Iterator[_Batch]:
    """Yield scored batches. first: number of the first text."""
    passes = [each for text, ids in enumerate(sequences, first) for each in passes_over(engine, text, ids, params)]
    for rows in sorted_batches(np.array([len(each.given) for each in passes], dtype=np.int64), params.batch_size):
        batch = [passes[row] for row in rows]
        ids = padded([each.given for each in batch], engine.pad_id)
        places = np.concatenate([each.places + number * ids.shape[1] for number, each in enumerate(batch)])
        targets = np.concatenate([each.targets for each in batch])
        found, best = engine.scored(ids, places, targets)
        owners = np.repeat([each.text for each in batch], [len(each.targets) for each in batch])
        yield _Batch(owners, places % ids.shape[1], targets, found.astype(np.float64), best)


def passes_over(engine: Engine, text: int, ids: Ids, params: AnswerParams) -> Iterator[Pass]:
    """Yield passes over an encoded text that together predict each of its tokens once; text: its number."""
    size = engine.positions if engine.causal else engine.positions - 2
    if engine.causal:
        for start, stop, first in windows(len(ids) - 1, size, params.stride):
            places = np.arange(first - start, stop - start)
            yield Pass(text, ids[start:stop], places, ids[1:][first:stop])
        return
    inner, mask = ids[1:-1], engine.mask_id
    cut = [*windows(len(inner), size, params.stride)]
    halves = [(start + stop + 1) // 2 for (_, stop, _), (start, _, _) in pairwise(cut)]  # midpoints of the overlaps
    # A text without tokens has no window.
    for (start, stop, _), first, last in zip(cut, [0, *halves], [*halves, len(inner)], strict=False):
        whole = framed(ids, start, stop)
        chosen = np.arange(first, last)
        for number in np.unique(chosen % params.mask_stride):
            places = chosen[chosen % params.mask_stride == number] - start + 1
            given = whole.copy()
            given[places] = mask
            yield Pass(text, given, places, whole[places])


def framed(ids: Ids, start: int, stop: int) -> Ids:
    """Return a window framed by the text's begin and end token, as masked models read it in training too."""
    return np.concatenate((ids[:1], ids[1:-1][start:stop], ids[-1:]))


def windows(tokens: int, size: int, stride: int | None) -> Iterator[tuple[int, int, int]]:
    """Yield the windows of a text: start, stop, and the first token not in earlier ones; stride: None for `size`."""
    seen = start = 0
    while seen < tokens:
        stop = min(start + size, tokens)
        yield start, stop, seen
        seen, start = stop, start + min(stride or size, size)
