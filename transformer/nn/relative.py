"""Attention to relative positions (Dai et al. 2019, section 3.3)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.attention import KeyValue, MultiHeadAttention, attention_weights
from transformer.nn.config import LayerParams
from transformer.nn.kernels.attention import Mask, attend
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import merged


class RelativeAttention(MultiHeadAttention):
    """Multi-head attention with the scores (q_i + u) k_j + (q_i + v) r_(i-j), which depend on no absolute position.

    In the paper's terms, q k is (a), q r (b), u k (c) and v r (d). r is a projection of the distance's sinusoids. As in
    the authors' code, each layer has its own u, v and projection; unlike there, projections of states have biases.
    """

    def __init__(self, params: LayerParams) -> None:
        width = params.dimension_of_head
        super().__init__(params.d_model, params.heads, head_dim=width, dropout=params.attention_dropout)
        self.distance = Linear(params.d_model, params.heads * width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(params.heads * width))
        """u"""
        self.distance_bias = nn.Parameter(torch.zeros(params.heads * width))
        """v"""

    def distances(self, sinusoids: Tensor) -> Tensor:
        """Project the sinusoids (R, C) of the distances R - 1, ..., 0 to r, (H, R, D)."""
        return self._split(self.distance(sinusoids))

    def forward(
        self,
        states: Tensor,
        memory: KeyValue,
        mask: Mask | None = None,
        *,
        causal: bool = False,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Let `states` (B, T, C) attend to `memory`, whose last T keys are theirs. Returns (B, T, C).

        mask and causal as in `attend`; positions: result of `distances`, for at least as many distances as keys.
        """
        query, bias = self._scored(states, memory, positions)
        dropout = self.dropout if self.training else 0.0
        attended = attend(query, *memory, mask, bias=lambda queries, keys: bias, causal=causal, dropout=dropout)
        concatenated: Tensor = self.output(merged(attended))
        return concatenated

    def weights(
        self,
        states: Tensor,
        memory: KeyValue,
        mask: Mask | None = None,
        *,
        causal: bool = False,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return the weights (B, H, T, S) of the same `forward` call, without dropout."""
        assert mask is None or isinstance(mask, Tensor)
        query, bias = self._scored(states, memory, positions)
        return attention_weights(query, memory.key, mask, bias=bias, causal=causal)

    def _scored(self, states: Tensor, memory: KeyValue, distances: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return q + u, (B, H, T, D), and the terms of distance of the scores, (B, H, T, S)."""
        assert distances is not None
        query = self._split(self.query(states))
        biases = self.content_bias, self.distance_bias
        content, distance = (bias.view(self.heads, 1, -1).to(query.dtype) for bias in biases)
        r = distances[:, distances.shape[1] - memory.key.shape[2] :]
        terms = relative_shift(((query + distance) * query.shape[-1] ** -0.5) @ r.transpose(-2, -1))
        return query + content, terms


def relative_shift(scores: Tensor) -> Tensor:
    """Move scores of distances to their keys: (..., T, S) by query and distance S - 1, ..., 0 -> by query and key.

    The queries are the last of the keys; what is at later keys has no meaning (appendix B).
    """
    *batch, queries, keys = scores.shape
    shifted = F.pad(scores, (1, 0)).view(*batch, keys + 1, queries)[..., 1:, :]
    return shifted.reshape(*batch, queries, keys)
