"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.attention import Mask, attend
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import merged
from transformer.nn.masks import causal_mask
from transformer.nn.positions import AttentionPositions


class KeyValue(NamedTuple):
    """Projected keys and values, (B, H, S, D) each, or (H, M, D) packed, as cached by a decoder between steps."""

    key: Tensor
    value: Tensor


def scaled_dot_product_attention(
    query: Tensor,
    memory: KeyValue,
    mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attention(Q, K, V) = softmax(QK^T / sqrt(d_k)) V (eq. 1). The models compute it with `kernels.attention.attend`.

    query: (B, H, T, D); memory: keys and values, (B, H, S, D); mask: broadcastable to (B, H, T, S), or None.
    bias: added to the scores; causal: position t sees only keys up to t; dropout: on the weights.
    Returns (B, H, T, D). A query row whose mask is all False gives zeros, not NaN.
    """
    weights = attention_weights(query, memory.key, mask, bias=bias, causal=causal)
    return F.dropout(weights, dropout) @ memory.value


def attention_weights(
    query: Tensor, key: Tensor, mask: Tensor | None, *, bias: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Compute softmax(QK^T / sqrt(d_k)) of eq. 1, (B, H, T, S); arguments as in `scaled_dot_product_attention`.

    The weights of a query sum to 1 over the keys; those of a query whose mask is all False are zeros.
    """
    d_k = query.shape[-1]
    scores = (query * d_k**-0.5) @ key.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    if causal:
        earlier = causal_mask(query.shape[-2], key.shape[-2], query.device)
        mask = earlier if mask is None else mask & earlier
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights: Tensor = scores.softmax(dim=-1)
    return weights if mask is None else weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(QW_i^Q, KW_i^K, VW_i^V) (section 3.2.2).

    Keys and values are projected in a separate call, so that a decoder can cache them.
    """

    def __init__(
        self, d_model: int, heads: int, *, head_dim: int, dropout: float, positions: AttentionPositions | None = None
    ) -> None:
        """positions: encodes positions in queries and keys; None if the embedding does."""
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = Linear(d_model, heads * head_dim)
        self.key = Linear(d_model, heads * head_dim)
        self.value = Linear(d_model, heads * head_dim)
        self.output = Linear(heads * head_dim, d_model)
        self.positions = positions or AttentionPositions()

    def project(self, states: Tensor, positions: Tensor | None = None) -> KeyValue:
        """Project `states` (B, S, C), or (M, C) packed, to keys and values; positions: of the states, (S,) or (M,)."""
        return KeyValue(self._heads(self.key, states, positions), self._split(self.value(states)))

    def forward(
        self,
        states: Tensor,
        memory: KeyValue,
        mask: Mask | None = None,
        *,
        causal: bool = False,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Let `states` (B, T, C), or (N, C) packed, attend to `memory`. Returns the shape of `states`.

        mask and causal as in `attend`; positions: of the states, (T,) or (N,).
        """
        query = self._heads(self.query, states, positions)
        dropout = self.dropout if self.training else 0.0
        attended = attend(query, *memory, mask, bias=self.positions.bias, causal=causal, dropout=dropout)
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
        """Return the weights (B, H, T, S) of the same `forward` call, without dropout. Raises TypeError if packed."""
        if not (mask is None or isinstance(mask, Tensor)):
            raise TypeError("packed sequences have no attention maps: pass the model a padded batch")
        query = self._heads(self.query, states, positions)
        bias = self.positions.bias(query.shape[-2], memory.key.shape[-2])
        return attention_weights(query, memory.key, mask, bias=bias, causal=causal)

    def _heads(self, projection: nn.Linear, states: Tensor, positions: Tensor | None) -> Tensor:
        """Project states to queries or keys and encode their positions."""
        return self.positions.transform(self._split(projection(states)), positions)

    def _split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:-1], self.heads, -1).transpose(-3, -2)  # (..., T, H * D) -> (..., H, T, D)
