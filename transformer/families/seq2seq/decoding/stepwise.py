"""Generates one hypothesis per row, token by token: greedy search, and sampling with temperature, top-k (Fan et al.
2018) and top-p (Holtzman et al. 2020).
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.distribution import block_repeated, next_log_probabilities
from transformer.families.seq2seq.decoding.interface import Generator, Hypothesis, Sources

Choice = Callable[[Tensor, Tensor, int], Tensor]
"""Log probabilities (R, V), row numbers (R,) on the CPU, number of tokens so far -> next token of each row, (R,)."""


def extend(
    model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams, choose: Choice, copies: int = 1
) -> list[list[Hypothesis]]:
    """Extend `copies` rows per source with tokens from `choose` until they end; rows leave the batch when they end.

    Row i * copies + j is copy j of source i. Returns each source's copies. The model runs on its device; the rows'
    bookkeeping is on the CPU, which has float64.
    """
    device = sources.ids.device
    cache = model.start(sources.ids)
    active = torch.arange(len(sources.ids) * copies)
    if copies > 1:
        cache.select((active // copies).to(device))
    limits = torch.tensor(sources.limits).repeat_interleave(copies)
    found: list[Hypothesis | None] = [None] * len(active)
    last = torch.full_like(active, target.begin_id)
    history = active.new_empty(len(active), 0)
    totals = torch.zeros(len(active), dtype=torch.float64)
    while len(active):
        log_probabilities = next_log_probabilities(model.output(model.step(last.to(device), cache)), target)
        block_repeated(log_probabilities, history, params.no_repeat_ngram)
        chosen = choose(log_probabilities, active, history.shape[1])
        totals = totals + log_probabilities.gather(1, chosen[:, None])[:, 0].cpu()
        last = chosen.cpu()
        history = torch.cat((history, last[:, None]), dim=1)
        leaving = last.eq(target.end_id) | limits[active].le(history.shape[1])
        if leaving.any():
            for row, ids, total in _triples(active[leaving], history[leaving], totals[leaving]):
                found[row] = hypothesis(ids, total, target.end_id, params)
            staying = (~leaving).nonzero()[:, 0]
            active, last, history, totals = (held[staying] for held in (active, last, history, totals))
            if len(active):
                cache.select(staying.to(device))
    rows = [each for each in found if each is not None]
    return [rows[start : start + copies] for start in range(0, len(rows), copies)]


def hypothesis(ids: list[int], log_probability: float, end_id: int, params: DecodingParams) -> Hypothesis:
    """Make a hypothesis from generated ids, which may end with the end token."""
    finished = ids[-1] == end_id
    score = params.normalized(log_probability, len(ids))
    return Hypothesis(ids[:-1] if finished else ids, score, log_probability, finished)


def _triples(rows: Tensor, ids: Tensor, totals: Tensor) -> Iterator[tuple[int, list[int], float]]:
    return zip(rows.tolist(), ids.tolist(), totals.tolist(), strict=True)


def greedy_search(
    model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams
) -> list[list[Hypothesis]]:
    """Always take the most probable next token; of equal ones, the first."""
    return extend(model, sources, target, params, _most_probable)


def _most_probable(log_probabilities: Tensor, rows: Tensor, step: int) -> Tensor:
    return log_probabilities.argmax(dim=-1)


def sample(model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams) -> list[list[Hypothesis]]:
    """`n_best` independent samples per source, the best score first; duplicates are possible.

    Sample j of sentence number i has its own random numbers, seeded by (seed, i, j), so batching does not matter. The
    parts of a split sentence also have their own. Scores and log probabilities are the model's, before temperature,
    top-k and top-p.
    """
    uniform = torch.from_numpy(
        np.stack(
            [
                np.random.default_rng((params.seed, number, draw, *part)).random(max(sources.limits))
                for number, *part in sources.seeds
                for draw in range(params.n_best)
            ]
        )
    )

    def choose(log_probabilities: Tensor, rows: Tensor, step: int) -> Tensor:
        # On the CPU: not every device has float64, and there is no deterministic CUDA kernel for cumulative sums.
        return draw_tokens(log_probabilities.cpu(), uniform[rows, step], params).to(log_probabilities.device)

    drawn = extend(model, sources, target, params, choose, copies=params.n_best)
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in drawn]


def draw_tokens(log_probabilities: Tensor, uniform: Tensor, params: DecodingParams) -> Tensor:
    """Draw one token per row, (R,), by inverting the cumulative distribution at uniform (R,) in [0, 1).

    log_probabilities: (R, V). Temperature is applied first, then top-k, then top-p.
    """
    scaled = log_probabilities.double() / params.temperature
    scaled, tokens = scaled.sort(dim=-1, descending=True, stable=True)
    probabilities = scaled[:, : params.top_k].softmax(dim=-1)
    if params.top_p is not None:
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities = probabilities.masked_fill(before >= params.top_p, 0.0)
    mass = probabilities.cumsum(dim=-1)
    position = torch.searchsorted(mass, uniform[:, None] * mass[:, -1:], right=True)
    last = probabilities.gt(0).sum(dim=-1, keepdim=True) - 1  # rounding could lead beyond the last one
    return tokens.gather(1, torch.minimum(position, last))[:, 0]
