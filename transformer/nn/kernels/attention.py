"""Attention with few passes over the scores, which are by far its largest tensor."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.nn.kernels.dropout import draw_mask, first_order
from transformer.nn.kernels.packing import BlockDiagonal
from transformer.nn.masks import causal_mask

Mask = Tensor | BlockDiagonal
Bias = Callable[[int, int], Tensor | None]
"""Numbers of queries T and keys S, the queries being the last of the keys -> the term added to the scores (H, T, S)."""

# Scores per head and sequence up to which plain products beat PyTorch's fused kernel on CPUs, most for few queries.
_FEW_SCORES = 64**2


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask | None = None,
    *,
    bias: Bias | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Compute `nn.attention.scaled_dot_product_attention`, padded or packed, with the device's fastest kernel.

    query: (B, H, T, D); key, value: (B, H, S, D); mask: broadcastable to (B, H, T, S), or None. Packed: (H, N, D),
    (H, M, D) and a `BlockDiagonal`. causal: the queries are the last of the keys' positions, and none sees a later key.
    Returns the shape of `query`.
    """
    if isinstance(mask, BlockDiagonal):
        blocks = mask.split(query, key, value)
        return mask.join([attend(*block, bias=bias, causal=causal, dropout=dropout) for block in blocks])
    queries, keys = query.shape[-2], key.shape[-2]
    added = None if bias is None else bias(queries, keys)
    causal = causal and queries > 1
    if causal and mask is not None:
        mask, causal = mask & causal_mask(queries, keys, mask.device), False
    if torch.compiler.is_exporting() or _plain_is_faster(query, keys, dropout):
        attended: Tensor = _Attention.apply(query, key, value, added, mask, causal, dropout)  # type: ignore[no-untyped-call]
    else:
        attended = _fused(query, key, value, added, mask, causal, dropout)
    # Kernels differ on rows without an allowed key; zeros, unlike NaN, cannot spread.
    return attended if mask is None else attended.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


def _plain_is_faster(query: Tensor, keys: int, dropout: float) -> bool:
    # No fused CPU kernel supports dropout, PyTorch's fallback is slower, and the fused backward pass is slow in bf16: a
    # training step of profile `seed` takes 1.7 times as long for translation, 1.4 times for sentiment.
    few = query.shape[-2] * keys <= _FEW_SCORES
    return query.device.type == "cpu" and (few or dropout > 0 or query.dtype == torch.bfloat16)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, mask: Tensor | None, causal: bool, dropout: float
) -> Tensor:
    """Call PyTorch's kernel, which takes only one of: a mask, an additive bias, or its own square causal mask."""
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and (bias is not None or queries < keys):
        mask, causal = causal_mask(queries, keys, query.device), False
    if bias is not None:
        bias = bias.to(query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, torch.finfo(bias.dtype).min)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal)


class _Attention(torch.autograd.Function):
    """Attention by plain matrix products.

    Autograd would copy the scores to mask them, and mask their gradient again where the softmax is already zero.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        causal: bool,
        dropout: float,
    ) -> Tensor:
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)  # (B, H, T, S)
        if bias is not None:
            scores = scores + bias
        if causal:
            mask = causal_mask(query.shape[-2], key.shape[-2], query.device)
        if mask is not None:
            scores = scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        weights: Tensor = scores.softmax(dim=-1).to(value.dtype)
        ctx.drop = draw_mask(weights, dropout) if dropout else None
        ctx.bias = None if bias is None else (bias.shape, bias.dtype)
        ctx.save_for_backward(query, key, value, weights)
        return (ctx.drop(weights) if ctx.drop else weights) @ value

    @staticmethod
    @first_order
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        grad_value = (ctx.drop(weights) if ctx.drop else weights).transpose(-2, -1) @ gradient
        grad_weights = gradient @ value.transpose(-2, -1)
        if ctx.drop:
            grad_weights = ctx.drop(grad_weights)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        scale = query.shape[-1] ** -0.5
        grad_query = (grad_scores @ key).mul_(scale)
        grad_key = grad_scores.transpose(-2, -1) @ (query * scale)
        grad_bias = None
        if ctx.needs_input_grad[3]:
            shape, dtype = ctx.bias
            grad_bias = grad_scores.to(dtype).sum_to_size(shape)
        return grad_query, grad_key, grad_value, grad_bias, None, None, None
