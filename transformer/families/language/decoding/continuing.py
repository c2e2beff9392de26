"""Continuation of encoded texts by greedy search, beam search or sampling."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from transformer.core.observer import check_deadline
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.language.decoding.config import AnswerParams
from transformer.generation.beam import beam_search
from transformer.generation.interface import Generator, Hypothesis, Sources
from transformer.generation.stepwise import best_first, greedy_search, sample

_METHODS = {"greedy": greedy_search, "beam": beam_search, "sample": sample}


def continue_texts(
    generator: Generator, prompts: Sequence[Ids], vocabulary: Vocabulary, params: AnswerParams, first: int = 0
) -> list[list[Hypothesis]]:
    """Return the continuations of each prompt, which starts with the begin token and has no end token.

    Results do not depend on the batch size. If a prompt leaves less room in the context than `max_length` tokens or
    half the context, whichever is less, its first tokens are dropped. first: number of the first prompt, for sampling
    seeds.
    """
    positions = generator.positions
    longest = positions + 1 - min(params.max_length, positions // 2)
    kept = [ids if len(ids) <= longest else np.concatenate((ids[:1], ids[1 - longest :])) for ids in prompts]
    method = "greedy" if params.method == "beam" and params.beam_size == 1 else params.method
    found: list[list[Hypothesis]] = [[] for _ in prompts]
    for rows in _batches([len(ids) for ids in kept], params.batch_size):
        check_deadline()
        ids = np.stack([kept[row] for row in rows])
        room = min(params.max_length, positions + 1 - ids.shape[1])
        seeds: list[tuple[int, ...]] = [(first + row,) for row in rows]
        batch = Sources(ids[:, :-1], first=ids[:, -1], limits=[room] * len(rows), seeds=seeds)
        for row, hypotheses in zip(rows, _METHODS[method](generator, batch, vocabulary, params), strict=True):
            found[row] = best_first(hypotheses) if method == "sample" else hypotheses
    return found


def _batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Batch rows of equal length: a padded prompt would be continued after its padding."""
    by_length = defaultdict(list)
    for row, length in enumerate(lengths):
        by_length[length].append(row)
    return [rows[start : start + size] for rows in by_length.values() for start in range(0, len(rows), size)]
