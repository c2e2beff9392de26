"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.dropout import draw_mask
from transformer.nn.first_order import first_order
from transformer.nn.ragged import Ragged

# Of a head and sequence: below it, plain products are faster on CPUs than PyTorch's fused kernel, most for few queries.
_FEW_SCORES = 64**2


class KeyValue(NamedTuple):
    """Projected keys and values, (B, H, S, D) each: what a decoder may keep between steps."""

    key: Tensor
    value: Tensor


def scaled_dot_product_attention(
    query: Tensor, memory: KeyValue, mask: Tensor | None, *, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """Attention(Q, K, V) = softmax(QK^T / sqrt(d_k)) V (eq. 1), by PyTorch's fused kernel where the device has one.

    query: (B, H, T, D); memory: keys and values, (B, H, S, D); mask: broadcastable to (B, H, T, S), or None.
    causal: position t sees only keys up to t (no mask may be given then); dropout: on the weights.
    Returns (B, H, T, D). A query row whose mask is all False gives zeros, not NaN.
    """
    few = query.shape[-2] * memory.key.shape[-2] <= _FEW_SCORES
    if query.device.type == "cpu" and (dropout or few or query.dtype == torch.bfloat16):
        return _plain_attention(query, memory, mask, causal=causal, dropout=dropout)
    attended = F.scaled_dot_product_attention(
        query, memory.key, memory.value, attn_mask=mask, dropout_p=dropout, is_causal=causal
    )
    if mask is None:
        return attended
    # Kernels differ on a row without any allowed key; zeros are the one answer that cannot spread.
    return attended.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


def _plain_attention(query: Tensor, memory: KeyValue, mask: Tensor | None, *, causal: bool, dropout: float) -> Tensor:
    """The same by plain matrix products.

    No fused CPU kernel drops weights, PyTorch's fallback is slower, and the fused kernel's backward pass is slow in
    bf16: it takes 1.7 times as long for a step of the profile `seed`'s translation model, 1.4 times for sentiment's.
    """
    attended: Tensor = _PlainAttention.apply(query, *memory, mask, causal, dropout)  # type: ignore[no-untyped-call]
    return attended if mask is None else attended.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


class _PlainAttention(torch.autograd.Function):
    """Forward and backward pass in few steps over the scores, which are far larger than all else.

    PyTorch's own gradient copies the scores to mask them and masks their gradient again, where the softmax has zeros.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, dropout: float
    ) -> Tensor:
        weights = _softmax(query, key, mask, causal=causal).to(value.dtype)
        ctx.drop = draw_mask(weights, dropout) if dropout else None
        ctx.save_for_backward(query, key, value, weights)
        return (ctx.drop(weights) if ctx.drop else weights) @ value

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        of_value = (ctx.drop(weights) if ctx.drop else weights).transpose(-2, -1) @ gradient
        of_weights = gradient @ value.transpose(-2, -1)
        if ctx.drop:
            of_weights = ctx.drop(of_weights)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        scale = query.shape[-1] ** -0.5
        of_query = (of_scores @ key).mul_(scale)
        of_key = of_scores.transpose(-2, -1) @ (query * scale)
        return of_query, of_key, of_value, None, None, None


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool = False) -> Tensor:
    """softmax(QK^T / sqrt(d_k)) of eq. 1, (B, H, T, S), to be looked at: the forward pass does not keep it.

    query: (B, H, T, D); key: (B, H, S, D); mask and causal as in `scaled_dot_product_attention`.
    The weights of a query sum to 1 over the keys; those of a query whose mask is all False are zeros.
    """
    weights = _softmax(query, key, mask, causal=causal)
    return weights if mask is None else weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


def _softmax(query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)  # (B, H, T, S)
    if causal:
        mask = causal_mask(scores.shape[-2], scores.shape[-1], scores.device)
    if mask is not None:
        scores = scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights: Tensor = scores.softmax(dim=-1)
    return weights


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O (section 3.2.2).

    Keys and values are projected apart from the call, so that a decoder can keep them.
    """

    def __init__(self, d_model: int, heads: int, *, head_dim: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(d_model, heads * head_dim)
        self.key = nn.Linear(d_model, heads * head_dim)
        self.value = nn.Linear(d_model, heads * head_dim)
        self.output = nn.Linear(heads * head_dim, d_model)

    def project(self, states: Tensor) -> KeyValue:
        """The keys and values of `states` (B, S, C)."""
        return KeyValue(self._split(self.key(states)), self._split(self.value(states)))

    def project_ragged(self, states: Tensor, layout: Ragged) -> list[KeyValue]:
        """The keys and values of every block of `states` (N, C)."""
        keys, values = layout.split(self.key(states)), layout.split(self.value(states))
        return [KeyValue(self._split(key), self._split(value)) for key, value in zip(keys, values, strict=True)]

    def forward(self, states: Tensor, memory: KeyValue, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Let `states` (B, T, C) attend to `memory`; mask as in `scaled_dot_product_attention`. Returns (B, T, C)."""
        merged: Tensor = self.output(self._attend(self.query(states), memory, mask, causal=causal))
        return merged

    def attend_ragged(
        self,
        states: Tensor,
        layout: Ragged,
        memory: Sequence[KeyValue],
        masks: Sequence[Tensor | None],
        *,
        causal: bool = False,
    ) -> Tensor:
        """The same for `states` (N, C) that lie as `layout` says, with a memory and a mask a block. Returns (N, C)."""
        blocks = zip(layout.split(self.query(states)), memory, masks, strict=True)
        attended = [self._attend(query, held, mask, causal=causal) for query, held, mask in blocks]
        merged: Tensor = self.output(layout.join(attended))
        return merged

    def _attend(self, query: Tensor, memory: KeyValue, mask: Tensor | None, *, causal: bool) -> Tensor:
        """query: (B, T, H * D). Returns the heads side by side, (B, T, H * D)."""
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(self._split(query), memory, mask, causal=causal, dropout=dropout)
        return attended.transpose(1, 2).flatten(2)

    def weights(self, states: Tensor, memory: KeyValue, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """The weights (B, H, T, S) of the same call of `forward`, without dropout."""
        return attention_weights(self._split(self.query(states)), memory.key, mask, causal=causal)

    def _split(self, states: Tensor) -> Tensor:
        batch, length, _ = states.shape
        return states.view(batch, length, self.heads, -1).transpose(1, 2)  # (B, T, H * D) -> (B, H, T, D)


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """The mask (B, 1, 1, S) that hides padding; token_ids: (B, S)."""
    return (token_ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """The mask (T, S) that lets position t see the keys up to t (section 3.2.3)."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()
