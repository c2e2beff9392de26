"""Attention weights of an ordinary forward pass, collected by hooks, without a separate code path in the models."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.attention import MultiHeadAttention
from transformer.nn.hashed import HashedAttention

Maps = dict[str, Tensor]
"""Weights (B, H, T, S) by attention module name, such as `decoder.layers.1.source_attention`."""
MARKER = "is_attention_weights"
"""A module with this attribute outputs attention weights: (B, T, S), (B, S) for one query, or (B, H, T, S)."""


@contextmanager
def collect_attention(model: nn.Module) -> Iterator[Maps]:
    """Collect the attention weights that `model` computes inside the block, in the order of the calls.

    For one forward pass, or the decoding steps of the same rows: each further call of a module appends its queries, and
    earlier queries get weight 0 for keys that did not exist yet. Weights are detached and without dropout. The model's
    outputs are bit-identical. Nothing is stored in the model, and the hooks are removed with the block.
    """
    maps: Maps = {}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention | HashedAttention):
            handles.append(module.register_forward_hook(partial(_recompute, maps, name), with_kwargs=True))
        elif getattr(module, MARKER, False):
            handles.append(module.register_forward_hook(partial(_keep, maps, name)))
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def _recompute(
    maps: Maps,
    name: str,
    module: MultiHeadAttention | HashedAttention,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    _: Tensor,
) -> None:
    with torch.no_grad():
        _append(maps, name, module.weights(*args, **kwargs))


def _keep(maps: Maps, name: str, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
    weights = output.detach()
    if weights.dim() == 2:
        weights = weights[:, None]
    _append(maps, name, weights if weights.dim() == 4 else weights[:, None])


def _append(maps: Maps, name: str, weights: Tensor) -> None:
    if (earlier := maps.get(name)) is not None:
        keys = max(earlier.shape[-1], weights.shape[-1])
        weights = torch.cat([F.pad(part, (0, keys - part.shape[-1])) for part in (earlier, weights)], dim=-2)
    maps[name] = weights
