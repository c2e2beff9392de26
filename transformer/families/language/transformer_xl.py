"""Transformer-XL: texts of any length, read in segments that remember the states of those before (Dai et al. 2019)."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from transformer.families.language.interface import LanguageConfig, TransformerXLParams
from transformer.families.language.network import LanguageNetwork
from transformer.nn.attention import KeyValue
from transformer.nn.layers import EncoderLayer, final_norm
from transformer.nn.layout import Cache
from transformer.nn.masks import causal_mask
from transformer.nn.positions import NoPositions, sinusoidal_table
from transformer.nn.relative import RelativeAttention

Memory = Sequence[Tensor]
"""For each layer, the states (B, M, C) that it read last."""


class TransformerXL(LanguageNetwork):
    """A causal language model whose segments attend to a memory of those before (section 3.2).

    A text is read in segments of `max_length` tokens. Each token attends to those before it in its segment, and to the
    `memory_length` before the segment; with `same_length` to the `memory_length` before itself.
    """

    encoder: "SegmentEncoder"

    def __init__(self, config: LanguageConfig) -> None:
        params = config.model
        assert isinstance(params, TransformerXLParams)
        super().__init__(config, NoPositions(), lambda: SegmentEncoder(params))
        self.segment_length = params.max_length
        self.memory_length = params.memory_length
        """Tokens remembered; evaluation may set more or fewer than in training."""

    @property
    def context(self) -> int:
        """Maximum length of a text: far beyond what fits into memory."""
        return 2**40

    def pads(self, device: torch.device) -> bool:
        """True: all segments of a batch have the same length, so there is no padding."""
        return True

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) of token_ids (B, T), padded at the end, with nothing remembered before."""
        assert not packed
        read, memory = [], None
        for segment in torch.split(token_ids, self.segment_length, dim=1):
            states, memory = self.segment(segment, memory)
            read.append(states)
        return torch.cat(read, dim=1)

    def segment(self, token_ids: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        """Read one segment (B, T). Returns its states (B, T, C), and the memory for the next, without gradient."""
        length = 0 if memory is None else memory[0].shape[1]
        distances = self.encoder.distances(length + token_ids.shape[1])
        found: tuple[Tensor, Memory] = self.encoder(
            self.embedding(token_ids), distances, memory=memory, keep=self.memory_length
        )
        return found

    def cache(self) -> "SegmentCache":
        """Return an empty cache."""
        return SegmentCache(self.encoder.distances(self.memory_length + self.segment_length))

    def read(self, token_ids: Tensor, cache: Cache | None) -> Tensor:
        """Append the tokens (B, T) to the cache, if there is one. Returns their states (B, T, C)."""
        if not isinstance(cache, SegmentCache):
            return self(token_ids)  # type: ignore[no-any-return]
        states, start = [], 0
        while start < token_ids.shape[1]:
            if not (inside := cache.seen % self.segment_length):
                cache.forget(self.memory_length)
            stop = start + self.segment_length - inside
            ids = token_ids[:, start:stop]
            read, _ = self.encoder(self.embedding(ids), cache.distances, cache=cache, keep=self.memory_length)
            states.append(read)
            cache.seen += ids.shape[1]
            start = stop
        return torch.cat(states, dim=1)


class SegmentCache(Cache):
    """Keys and values of the memory and of the segment so far."""

    def __init__(self, distances: Sequence[Tensor]) -> None:
        """distances: by layer, from `SegmentEncoder.distances`."""
        super().__init__()
        self.distances = distances
        self.seen = 0
        """Tokens read."""

    def forget(self, memory_length: int) -> None:
        """Keep the last tokens as the memory of the next segment."""
        start = max(0, self.length - memory_length)
        self.held = {
            layer: KeyValue(held.key[:, :, start:], held.value[:, :, start:]) for layer, held in self.held.items()
        }


class SegmentEncoder(nn.Module):
    """A stack of layers that attend to relative positions, over a segment and its memory."""

    def __init__(self, params: TransformerXLParams) -> None:
        super().__init__()
        self.attentions = [RelativeAttention(params) for _ in range(params.layers)]
        self.layers = nn.ModuleList(EncoderLayer(params, attention) for attention in self.attentions)
        self.norm = final_norm(params)
        self.width, self.same_length, self.clamp_length = params.d_model, params.same_length, params.clamp_length

    def distances(self, count: int) -> list[Tensor]:
        """Return, by layer, the projected distances count - 1, ..., 0, (H, count, D).

        Distances of `clamp_length` and more are the same one.
        """
        weight = next(self.parameters())
        distances = torch.arange(count - 1, -1, -1, device=weight.device)
        if self.clamp_length is not None:
            distances = distances.clamp(max=self.clamp_length)
        sinusoids = sinusoidal_table(count, self.width).to(weight)[distances]
        return [attention.distances(sinusoids) for attention in self.attentions]

    def forward(
        self,
        states: Tensor,
        distances: Sequence[Tensor],
        *,
        memory: Memory | None = None,
        cache: SegmentCache | None = None,
        keep: int,
    ) -> tuple[Tensor, Memory]:
        """Read a segment (B, T, C), or, with a cache, a part of one. Returns (B, T, C), and the next memory.

        distances: by layer, from `distances`, for as many keys or more; keep: states to remember.
        """
        queries = states.shape[1]
        keys = queries + (cache.length if cache is not None else 0 if memory is None else memory[0].shape[1])
        mask = causal_mask(queries, keys, states.device).triu(keys - queries - keep) if self.same_length else None
        kept = []
        for index, layer in enumerate(self.layers):
            before = None if memory is None else memory[index]
            read = states if before is None else torch.cat((before, states), dim=1)
            kept.append(read[:, max(0, read.shape[1] - keep) :].detach())
            extended = {} if cache is None else {"extend": partial(cache.extend, index)}
            states = layer(states, mask, distances[index], before=before, causal=mask is None, **extended)
        return self.norm(states), kept
