"""Attention of recurrent decoders to the source (Bahdanau et al. 2015; Luong et al. 2015)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.nn.kernels.linear import Linear


class Memory(NamedTuple):
    """The encoded source as input to attention. M: width of the encoder's states; A: width of the keys."""

    states: Tensor
    """(B, S, M)."""
    keys: Tensor
    """(B, S, A): the states projected by the score, once per source."""
    real: Tensor
    """(B, S), False at padding."""


class DotScore(nn.Module):
    """score(h_t, h_s) = h_t^T h_s (Luong et al. 2015, eq. 8). Both states have the same width.

    `scaled` divides it by sqrt(C), the query's width, as in Vaswani et al. 2017, section 3.2.1.
    """

    def __init__(self, query: int, *, scaled: bool) -> None:
        super().__init__()
        self.scale = query**-0.5 if scaled else 1.0

    def keys(self, states: Tensor) -> Tensor:
        """Return the states unchanged."""
        return states

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, A) against keys (B, S, A). Returns (B, S)."""
        return (keys @ (query * self.scale)[:, :, None])[:, :, 0]


class GeneralScore(DotScore):
    """score(h_t, h_s) = h_t^T W_a h_s (Luong et al. 2015, eq. 8), scaled like `DotScore`."""

    def __init__(self, query: int, memory: int, *, scaled: bool) -> None:
        super().__init__(query, scaled=scaled)
        self.key = Linear(memory, query, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """Project states: (B, S, M) -> (B, S, C)."""
        projected: Tensor = self.key(states)
        return projected


class AdditiveScore(nn.Module):
    """score(s, h) = v_a^T tanh(W_a s + U_a h) (Bahdanau et al. 2015, A.1.2).

    Luong's concat, v_a^T tanh(W_a [h_t; h_s]) (eq. 8), is the same with W_a and U_a as the halves of one matrix.
    """

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        self.query = Linear(query, query, bias=False)
        self.key = Linear(memory, query, bias=False)
        self.energy = Linear(query, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """Project states: (B, S, M) -> (B, S, C)."""
        projected: Tensor = self.key(states)
        return projected

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, C) against keys (B, S, C). Returns (B, S)."""
        scores: Tensor = self.energy((self.query(query)[:, None] + keys).tanh())
        return scores[:, :, 0]


class PredictedPosition(nn.Module):
    """p_t = S * sigmoid(v_p^T tanh(W_p h_t)) (Luong et al. 2015, eq. 9); S is the length of the row's source."""

    def __init__(self, query: int) -> None:
        super().__init__()
        self.inner = Linear(query, query, bias=False)
        self.outer = Linear(query, 1, bias=False)

    def forward(self, query: Tensor, real: Tensor) -> Tensor:
        """Return the predicted positions (B, 1), from 0. query: (B, C); real: (B, S)."""
        share: Tensor = self.outer(self.inner(query).tanh()).sigmoid()
        length = real.sum(dim=1, keepdim=True, dtype=self.outer.weight.dtype)  # bf16 cannot represent all positions
        return length * share


class AttentionWeights(nn.Module):
    """Softmax of the scores; a module, so that a forward hook can read the attention map from its output."""

    is_attention_weights = True
    """Marks the module for `figures.attention_maps`."""

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window = window

    def forward(self, scores: Tensor, allowed: Tensor, centre: Tensor | None) -> Tensor:
        """Return the weights (B, S) of one target position; zeros for a row without allowed positions.

        scores: (B, S); allowed: (B, S); centre: (B, 1), p_t of local-p attention, or None. With it, only positions in
        [p_t - D, p_t + D] count, and their softmax is multiplied by a Gaussian with sigma = D / 2 (eq. 10).
        """
        if self.window is None or centre is None:
            return _masked_softmax(scores, allowed)
        distance = torch.arange(scores.shape[1], device=scores.device) - centre
        near = _masked_softmax(scores, allowed & (distance.abs() <= self.window))
        return near * torch.exp(-(distance**2) / (2 * (self.window / 2) ** 2))


def _masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    lowest = torch.finfo(scores.dtype).min  # not -inf, whose softmax is NaN if nothing is allowed
    return scores.masked_fill(~allowed, lowest).softmax(dim=1).masked_fill(~allowed, 0.0)


class RecurrentAttention(nn.Module):
    """Context of a query: a weighted sum of the encoder's states."""

    def __init__(self, score: DotScore | AdditiveScore, query: int, window: int | None) -> None:
        super().__init__()
        self.score = score
        self.position = PredictedPosition(query) if window is not None else None
        self.weights = AttentionWeights(window)

    def memory(self, states: Tensor, real: Tensor) -> Memory:
        """Return the inputs of `forward` that are computed once per source; states: (B, S, M); real: (B, S)."""
        return Memory(states, self.score.keys(states), real)

    def forward(self, query: Tensor, memory: Memory) -> Tensor:
        """Return the context (B, M) of query (B, C)."""
        centre = None if self.position is None else self.position(query, memory.real)
        weights = self.weights(self.score(query, memory.keys), memory.real, centre)
        context: Tensor = weights[:, None] @ memory.states
        return context[:, 0]


def make_attention(name: str, query: int, memory: int, window: int | None) -> RecurrentAttention:
    """Return the attention named `model.attention`; query, memory: widths of the decoder's and encoder's states."""
    scaled = "scaled" in name
    if name.endswith("dot"):
        return RecurrentAttention(DotScore(query, scaled=scaled), query, window)
    if name.endswith("general"):
        return RecurrentAttention(GeneralScore(query, memory, scaled=scaled), query, window)
    return RecurrentAttention(AdditiveScore(query, memory), query, window)
