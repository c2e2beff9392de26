"""Beam search (Sutskever et al. 2014, section 3.2), with length normalization (Wu et al. 2016, section 7).

A step takes the 2K best continuations of a sentence's K running hypotheses, so that end tokens never starve the beam.
An end token among the K best finishes a hypothesis; the K best of the others continue. `DecodingParams.stopping` says
when a sentence is done, at the latest at its maximum length. If too few hypotheses have finished by then, unfinished
ones follow them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.distribution import best, block_repeated, next_log_probabilities
from transformer.families.seq2seq.decoding.interface import Generator, Hypothesis, Sources
from transformer.families.seq2seq.decoding.stepwise import hypothesis

# Hypotheses whose distributions a CPU computes at a time: those of a whole batch would not fit into its cache.
_ROWS = 128


class _Beams(NamedTuple):
    """The running hypotheses of B sentences, W of each, the most probable first; -inf marks an empty slot.

    They are on the CPU, which has float64 and checks at every step which of them end.
    """

    log_probabilities: Tensor
    """(B, W), float64."""
    ids: Tensor
    """(B, W, T)."""
    parents: Tensor
    """(B, W): the index of the previous hypothesis that each one continues."""

    def at(self, places: Tensor) -> "_Beams":
        """Select hypotheses of each sentence; places: (B, W')."""
        ids = self.ids.gather(1, places[:, :, None].expand(-1, -1, self.ids.shape[2]))
        return _Beams(self.log_probabilities.gather(1, places), ids, self.parents.gather(1, places))


class _Sentence:
    """The best finished hypotheses of one sentence."""

    def __init__(self, limit: int, params: DecodingParams, end_id: int) -> None:
        self.hypotheses: list[Hypothesis] = []
        self._limit, self._params, self._end_id = limit, params, end_id
        self._kept = params.n_best if params.stopping == "exact" else params.beam_size

    def add(self, ids: list[int], log_probability: float) -> None:
        """Add a finished hypothesis; of equal scores, the earlier one ranks first."""
        found = [*self.hypotheses, hypothesis(ids, log_probability, self._end_id, self._params)]
        self.hypotheses = sorted(found, key=lambda each: -each.score)[: self._kept]

    def over(self, length: int, running: float) -> bool:
        """True when this sentence is done. running: log probability of its best unfinished hypothesis.

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
        """Keep the `n_best` best; if too few have finished, the best unfinished ones follow."""
        running = [
            hypothesis(row, log_probability, self._end_id, self._params)
            for row, log_probability in zip(ids, log_probabilities, strict=True)
            if log_probability > float("-inf")
        ]
        running.sort(key=lambda each: -each.score)
        self.hypotheses = [*self.hypotheses, *running][: self._params.n_best]


def beam_search(
    model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each source: finished ones first, each group by descending score."""
    sentences = [_Sentence(limit, params, target.end_id) for limit in sources.limits]
    device, cache, running = sources.ids.device, model.start(sources.ids), list(sentences)
    last = torch.full((len(sentences),), target.begin_id)
    beams = _start(last)
    while running:
        found = _next_tokens(model, model.step(last.to(device), cache), beams, target, params)
        candidates = _continue(beams, *found, 2 * params.beam_size)
        width, beams = beams.ids.shape[1], _without_ended(candidates, running, target.end_id, params.beam_size)
        staying = _close(beams, running)
        if staying:
            running = [running[place] for place in staying]
            kept = torch.tensor(staying)
            beams = _Beams(*(held[kept] for held in beams))
            cache.select((kept[:, None] * width + beams.parents).flatten().to(device))
            last = beams.ids[:, :, -1].flatten()
        else:
            running = []
    return [sentence.hypotheses for sentence in sentences]


def _start(like: Tensor) -> _Beams:
    """One empty hypothesis for each element of `like`."""
    count = len(like)
    zeros = torch.zeros(count, 1, dtype=torch.float64)
    return _Beams(zeros, like.new_empty(count, 1, 0), like.new_zeros(count, 1))


def _next_tokens(
    model: Generator, states: Tensor, beams: _Beams, target: Vocabulary, params: DecodingParams
) -> tuple[Tensor, Tensor]:
    """The 2K best next tokens of each hypothesis: log probabilities and tokens (B * W, 2K); states: (B * W, C)."""
    rows = _ROWS if states.device.type == "cpu" else len(states)
    found = []
    for part, history in zip(torch.split(states, rows), torch.split(beams.ids.flatten(0, 1), rows), strict=True):
        log_probabilities = next_log_probabilities(model.output(part), target)
        block_repeated(log_probabilities, history, params.no_repeat_ngram)
        found.append(best(log_probabilities, 2 * params.beam_size))
    values, tokens = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
    return values, tokens


def _continue(beams: _Beams, values: Tensor, tokens: Tensor, count: int) -> _Beams:
    """The `count` best continuations of each sentence, from the `_next_tokens` of its hypotheses."""
    batch = len(beams.ids)
    totals, places = best((beams.log_probabilities.view(-1, 1) + values).view(batch, -1), count)
    parents = places // values.shape[1]
    tokens = tokens.view(batch, -1).gather(1, places)
    ids = beams.ids.gather(1, parents[:, :, None].expand(-1, -1, beams.ids.shape[2]))
    return _Beams(totals, torch.cat((ids, tokens[:, :, None]), dim=2), parents)


def _without_ended(candidates: _Beams, sentences: list[_Sentence], end_id: int, beam_size: int) -> _Beams:
    """Add to each sentence the hypotheses among its `beam_size` best that end; return the best that do not end."""
    ended = candidates.ids[:, :, -1].eq(end_id)
    totals = candidates.log_probabilities
    place, rank = (ended & totals.isfinite())[:, :beam_size].nonzero(as_tuple=True)
    for sentence, ids, total in zip(
        place.tolist(), candidates.ids[place, rank].tolist(), totals[place, rank].tolist(), strict=True
    ):
        sentences[sentence].add(ids, total)
    _, order = best(totals.masked_fill(ended, float("-inf")), beam_size)
    return candidates._replace(log_probabilities=totals.masked_fill(ended, float("-inf"))).at(order)


def _close(beams: _Beams, sentences: list[_Sentence]) -> list[int]:
    """Close the sentences that are done; return the indices of the others."""
    staying, length = [], beams.ids.shape[2]
    for place, (sentence, running) in enumerate(zip(sentences, beams.log_probabilities[:, 0].tolist(), strict=True)):
        if sentence.over(length, running):
            sentence.close(beams.ids[place].tolist(), beams.log_probabilities[place].tolist())
        else:
            staying.append(place)
    return staying
