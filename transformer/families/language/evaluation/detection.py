"""How well a discriminator finds the tokens that its generator replaced.

Texts are corrupted as in training, but so that every token is judged alike: in each of `apart` passes over a text one
token of so many is hidden, and the generator draws another, or the same, in its place. A token drawn as it was counts
as the text's own.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.evaluation.bootstrap import Floats
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.detecting import judged
from transformer.families.language.decoding.scoring import Pass, passes_over
from transformer.families.language.decoding.with_torch import TorchEngine
from transformer.families.language.evaluation.detection_scores import COLUMNS, Counts

_TEXTS = 256  # whose windows are in memory at a time
_SHOWN = 10  # texts of a split whose first pass is kept


class Corrupted(NamedTuple):
    """A window in which tokens were replaced, and what the discriminator says."""

    text: int
    ids: Ids
    """(T,), from begin to end token."""
    own: Ids
    """(T,) The text's own."""
    probabilities: Floats
    """(T,) That they were replaced."""


class Detected(NamedTuple):
    """The judgement of many texts."""

    counts: Counts
    probabilities: Floats
    """(K,) Of all judged tokens."""
    replaced: Floats
    """(K,) 1 where they were."""
    shown: list[Corrupted]
    """The first window of the first texts."""


def detect(engine: TorchEngine, sequences: Sequence[Ids], params: AnswerParams, observer: Observer) -> Detected:
    """Corrupt encoded texts, from begin to end token, and judge their tokens; draws depend on (seed, text's number)."""
    sums = np.zeros((len(sequences), len(COLUMNS)))
    probabilities, labels = [np.empty(0)], [np.empty(0)]
    shown: list[Corrupted] = []
    starts = range(0, len(sequences), _TEXTS)
    for start in observer.progress(starts, total=len(starts), what="detect"):
        for each in _corrupted(engine, sequences[start : start + _TEXTS], start, params):
            found, replaced = each.probabilities[1:-1], (each.ids != each.own)[1:-1]
            positive = found > 0.5
            sums[each.text] += len(found), replaced.sum(), (positive & replaced).sum(), (positive & ~replaced).sum()
            probabilities.append(found)
            labels.append(replaced.astype(np.float64))
            if each.text < _SHOWN and not any(other.text == each.text for other in shown):
                shown.append(each)
    return Detected(Counts(*sums.T), np.concatenate(probabilities), np.concatenate(labels), shown)


def _corrupted(engine: TorchEngine, texts: Sequence[Ids], first: int, params: AnswerParams) -> Iterator[Corrupted]:
    passes = [each for text, ids in enumerate(texts, first) for each in passes_over(engine, text, ids, params)]
    random = {text: np.random.default_rng((params.seed, text)) for text in range(first, first + len(texts))}
    draws = [random[each.text].random(len(each.places)) for each in passes]
    own = [_with(each, each.targets) for each in passes]
    given: list[Ids] = [*own]
    for rows in sorted_batches(np.array([len(each.given) for each in passes], dtype=np.int64), params.batch_size):
        batch = [passes[row] for row in rows]
        ids = padded([each.given for each in batch], engine.pad_id)
        places = np.concatenate([each.places + number * ids.shape[1] for number, each in enumerate(batch)])
        tokens = engine.replacements(ids, places, np.concatenate([draws[row] for row in rows]))
        parts = np.split(tokens, np.cumsum([len(each.places) for each in batch])[:-1])
        for row, each, part in zip(rows, batch, parts, strict=True):
            given[row] = _with(each, part)
    found = judged(engine, given, params.batch_size)
    for each, ids, whole, probabilities in zip(passes, given, own, found, strict=True):
        yield Corrupted(each.text, ids, whole, probabilities.astype(np.float64))


def _with(given: Pass, tokens: Ids) -> Ids:
    """The window with these tokens at the hidden places."""
    ids = given.given.copy()
    ids[given.places] = tokens
    return ids
