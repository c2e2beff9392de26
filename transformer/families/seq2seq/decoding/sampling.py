"""Sampling with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020)."""

import numpy as np
import torch
from torch import Tensor

from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.interface import Generator, Hypothesis, Sources
from transformer.families.seq2seq.decoding.stepwise import extend


def sample(model: Generator, sources: Sources, target: Vocabulary, params: DecodingParams) -> list[list[Hypothesis]]:
    """`n_best` independent draws for each source, the best score first; two may be the same.

    Draw j of sentence number i has random numbers of its own, seeded by (seed, i, j): the batch does not matter. The
    parts of a split sentence draw for themselves. Scores and log probabilities are the model's, before temperature,
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
        # On the CPU: not every device has float64, and cumulative sums have no deterministic CUDA kernel.
        return draw_tokens(log_probabilities.cpu(), uniform[rows, step], params).to(log_probabilities.device)

    drawn = extend(model, sources, target, params, choose, copies=params.n_best)
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in drawn]


def draw_tokens(log_probabilities: Tensor, uniform: Tensor, params: DecodingParams) -> Tensor:
    """One token a row, (R,), by inverting the distribution function at uniform (R,) in [0, 1).

    log_probabilities: (R, V). Temperature comes first, then top-k, then top-p.
    """
    scaled = log_probabilities.double() / params.temperature
    scaled, tokens = scaled.sort(dim=-1, descending=True, stable=True)
    probabilities = scaled[:, : params.top_k].softmax(dim=-1)
    if params.top_p is not None:
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities = probabilities.masked_fill(before >= params.top_p, 0.0)
    mass = probabilities.cumsum(dim=-1)
    position = torch.searchsorted(mass, uniform[:, None] * mass[:, -1:], right=True)
    last = probabilities.gt(0).sum(dim=-1, keepdim=True) - 1  # where rounding would lead beyond all mass
    return tokens.gather(1, torch.minimum(position, last))[:, 0]
