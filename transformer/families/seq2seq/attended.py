"""Attention of one pass over a text and its translation."""

import re
from collections.abc import Sequence

import torch

from transformer.data.store import Ids
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.nn.attention_weights import Maps, collect_attention


def attention(translator: TorchTranslator, source: Ids, given: Sequence[int]) -> Maps:
    """Return the weights (1, H, T, S), (1, H, S, S) or (1, H, T, T), by module name, of S source and T decoder inputs.

    source: ids from begin to end token; given: the begin token and the target.
    """
    device = next(translator.model.parameters()).device
    with torch.inference_mode(), collect_attention(translator.model) as maps:
        translator.model(torch.from_numpy(source)[None].to(device), torch.tensor([list(given)], device=device))
    return maps


def self_maps(maps: Maps, side: str) -> Maps:
    """Return the maps of a Transformer's self-attention; side: `encoder` or `decoder`."""
    own = re.compile(rf"{side}\.layers\.\d+\.attention")
    return {name: weights for name, weights in maps.items() if own.fullmatch(name)}


def cross_maps(maps: Maps) -> Maps:
    """Return the cross-attention maps of a Transformer decoder, or the attention maps of a recurrent decoder."""
    own = {*self_maps(maps, "encoder"), *self_maps(maps, "decoder")}
    return {name: weights for name, weights in maps.items() if name not in own}
