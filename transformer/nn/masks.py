"""Attention masks for padding and for later positions (Vaswani et al. 2017, section 3.2.3)."""

import torch
from torch import Tensor


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """Return the padding mask (B, 1, 1, S); token_ids: (B, S)."""
    return (token_ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Return the causal mask (T, S): each query attends to the keys up to its own position; the last query is at the
    last key.

    With as many queries as keys: position t attends to the keys up to t (section 3.2.3).
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
