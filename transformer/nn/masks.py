"""What attention may not see: padding, and what comes later (Vaswani et al. 2017, section 3.2.3)."""

import torch
from torch import Tensor


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """The mask (B, 1, 1, S) that hides padding; token_ids: (B, S)."""
    return (token_ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """The mask (T, S) that lets each query, the last of which is at the last key, see the keys up to its own position.

    With as many queries as keys: position t sees the keys up to t (section 3.2.3).
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
