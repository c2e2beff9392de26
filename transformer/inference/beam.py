"""Beam search (Sutskever et al. 2014, section 3.2), with length normalization (Wu et al. 2016, section 7).

A step takes the 2K best continuations of a sentence's K running hypotheses, so that end tokens never starve the beam.
An end token among the K best finishes a hypothesis; the K best of the others continue. `SearchParams.stopping` says
when a sentence is done, at the latest at its maximum length. If too few hypotheses have finished by then, unfinished
ones follow them.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary
from transformer.inference.search import Generator, Hypothesis, SearchParams, Sources
from transformer.inference.stepwise import best, hypothesis, repeating


class _Beams(NamedTuple):
    """The running hypotheses of B sentences, W of each, the most probable first; -inf marks an empty slot."""

    log_probabilities: NDArray[np.float64]
    """(B, W)."""
    ids: Ids
    """Token ids (B, W, T)."""
    parents: Ids
    """(B, W): the index of the previous hypothesis that each one continues."""

    def at(self, places: Ids) -> "_Beams":
        """Select hypotheses of each sentence; places: (B, W')."""
        ids = np.take_along_axis(self.ids, places[:, :, None], axis=1)
        totals = np.take_along_axis(self.log_probabilities, places, axis=1)
        return _Beams(totals, ids, np.take_along_axis(self.parents, places, axis=1))


class _Sentence:
    """The best finished hypotheses of one sentence."""

    def __init__(self, limit: int, params: SearchParams, end_id: int) -> None:
        self.hypotheses: list[Hypothesis] = []
        self._limit, self._params, self._end_id = limit, params, end_id
        self._kept = params.n_best if params.stopping == "exact" else params.beam_size

    def add(self, ids: list[int], log_probability: float) -> None:
        """Add a finished hypothesis; ties keep their order."""
        found = [*self.hypotheses, hypothesis(ids, log_probability, self._end_id, self._params)]
        self.hypotheses = sorted(found, key=lambda each: -each.score)[: self._kept]

    def over(self, length: int, running: float) -> bool:
        """True if this sentence is done. running: log probability of its best unfinished hypothesis.

        `exact`: more tokens can only lower a log probability, which is at most 0, and its divisor is largest at the
        maximum length, so no score can exceed this log probability normalized by that length.
        """
        if length == self._limit or running == float("-inf"):
            return True
        if len(self.hypotheses) < self._kept:
            return False
        if self._params.stopping == "first":
            return True
        end = self._limit if self._params.stopping == "exact" else length
        return self.hypotheses[-1].score >= self._params.normalized(running, end)

    def close(self, ids: list[list[int]], log_probabilities: list[float]) -> None:
        """Keep the `n_best` best; if too few have finished, append the best unfinished ones."""
        running = [
            hypothesis(row, log_probability, self._end_id, self._params)
            for row, log_probability in zip(ids, log_probabilities, strict=True)
            if log_probability > float("-inf")
        ]
        running.sort(key=lambda each: -each.score)
        self.hypotheses = [*self.hypotheses, *running][: self._params.n_best]


def beam_search(model: Generator, sources: Sources, target: Vocabulary, params: SearchParams) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each source: finished ones first, each group by descending score."""
    sentences = [_Sentence(limit, params, target.end_id) for limit in sources.limits]
    cache, running, beams = model.start(sources.ids), list(sentences), _start(len(sentences))
    last = sources.first
    while running:
        blocked = repeating(beams.ids.reshape(len(last), -1), params.no_repeat_ngram)
        candidates = _continue(beams, *model.best(last, cache, 2 * params.beam_size, blocked), 2 * params.beam_size)
        width, beams = beams.ids.shape[1], _without_ended(candidates, running, target.end_id, params.beam_size)
        staying = _close(beams, running)
        if staying:
            running = [running[place] for place in staying]
            kept = np.array(staying)
            beams = _Beams(*(held[kept] for held in beams))
            cache.select((kept[:, None] * width + beams.parents).ravel())
            last = beams.ids[:, :, -1].ravel()
        else:
            running = []
    return [sentence.hypotheses for sentence in sentences]


def _start(count: int) -> _Beams:
    """Return one empty hypothesis per sentence, for `count` sentences."""
    return _Beams(np.zeros((count, 1)), np.empty((count, 1, 0), dtype=np.int64), np.zeros((count, 1), dtype=np.int64))


def _continue(beams: _Beams, values: NDArray[np.floating[Any]], tokens: Ids, count: int) -> _Beams:
    """Return the `count` best continuations per sentence, from the best next tokens (B * W, 2K) of its hypotheses."""
    batch = len(beams.ids)
    totals, places = best((beams.log_probabilities.reshape(-1, 1) + values).reshape(batch, -1), count)
    parents = places // values.shape[1]
    added = np.take_along_axis(tokens.reshape(batch, -1), places, axis=1)
    ids = np.take_along_axis(beams.ids, parents[:, :, None], axis=1)
    return _Beams(totals.astype(np.float64), np.concatenate((ids, added[:, :, None]), axis=2), parents)


def _without_ended(candidates: _Beams, sentences: list[_Sentence], end_id: int, beam_size: int) -> _Beams:
    """Move hypotheses among the `beam_size` best that end to their sentence; return the best unfinished ones."""
    ended = candidates.ids[:, :, -1] == end_id
    totals = candidates.log_probabilities
    place, rank = (ended & np.isfinite(totals))[:, :beam_size].nonzero()
    for sentence, ids, total in zip(
        place.tolist(), candidates.ids[place, rank].tolist(), totals[place, rank].tolist(), strict=True
    ):
        sentences[sentence].add(ids, total)
    others = np.where(ended, -np.inf, totals)
    _, order = best(others, beam_size)
    return candidates._replace(log_probabilities=others).at(order)


def _close(beams: _Beams, sentences: list[_Sentence]) -> list[int]:
    """Close the sentences that are done; return the indices of the others."""
    staying, length = [], beams.ids.shape[2]
    for place, (sentence, running) in enumerate(zip(sentences, beams.log_probabilities[:, 0].tolist(), strict=True)):
        if sentence.over(length, running):
            sentence.close(beams.ids[place].tolist(), beams.log_probabilities[place].tolist())
        else:
            staying.append(place)
    return staying
