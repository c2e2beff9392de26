"""The decoder: causal self-attention, attention to the source, feed-forward (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Callable

from torch import Tensor, nn

from transformer.families.seq2seq.nn.cache import DecoderCache
from transformer.nn.attention import KeyValue
from transformer.nn.config import TransformerParams
from transformer.nn.layers import FeedForward, Residual, final_norm, multi_head_attention
from transformer.nn.ragged import Ragged

Sublayer = Callable[[Tensor], Tensor]


class DecoderLayer(nn.Module):
    """One layer, for a whole target at once (training) or for its next position (generation)."""

    def __init__(self, params: TransformerParams) -> None:
        super().__init__()
        self.attention = multi_head_attention(params)
        self.attention_residual = Residual(params)
        self.source_attention = multi_head_attention(params)
        self.source_residual = Residual(params)
        self.feed_forward = FeedForward(params)
        self.feed_forward_residual = Residual(params)

    def forward(self, states: Tensor, encoded: Tensor, source_mask: Tensor) -> Tensor:
        """states: (B, T, C), all target positions; encoded: (B, S, C); source_mask: (B, 1, 1, S). Returns (B, T, C)."""
        source = self.source_attention.project(encoded)
        return self._layer(
            states,
            lambda x: self.attention(x, self.attention.project(x), causal=True),
            lambda x: self.source_attention(x, source, source_mask),
        )

    def forward_ragged(self, states: Tensor, encoded: Tensor, target: Ragged, source: Ragged) -> Tensor:
        """The same for states (N, C) and encoded (M, C) that lie as `target` and `source` say. Returns (N, C)."""
        memory = self.source_attention.project_ragged(encoded, source)
        unmasked = [None] * len(memory)  # no target token sees the padding behind it

        def attend_to_target(x: Tensor) -> Tensor:
            held = self.attention.project_ragged(x, target)
            return self.attention.attend_ragged(x, target, held, unmasked, causal=True)

        return self._layer(
            states,
            attend_to_target,
            lambda x: self.source_attention.attend_ragged(x, target, memory, source.masks),
        )

    def step(self, states: Tensor, cache: DecoderCache, layer: int) -> Tensor:
        """states: (B, 1, C), the next position; the cache grows by it. Returns (B, 1, C)."""
        return self._layer(
            states,
            lambda x: self.attention(x, cache.extend(layer, self.attention.project(x))),
            lambda x: self._attend_to_source(x, cache, layer),
        )

    def _attend_to_source(self, states: Tensor, cache: DecoderCache, layer: int) -> Tensor:
        queries = cache.by_source(states)
        attended: Tensor = self.source_attention(queries, cache.source[layer], cache.source_mask)
        return attended.view_as(states)

    def _layer(self, states: Tensor, to_target: Sublayer, to_source: Sublayer) -> Tensor:
        states = self.attention_residual(states, to_target)
        states = self.source_residual(states, to_source)
        decoded: Tensor = self.feed_forward_residual(states, self.feed_forward)
        return decoded


class Decoder(nn.Module):
    """A stack of decoder layers over embedded target tokens."""

    def __init__(self, layers: int, params: TransformerParams) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(params) for _ in range(layers))
        self.norm = final_norm(params)

    def forward(self, states: Tensor, encoded: Tensor, source_mask: Tensor) -> Tensor:
        """states: (B, T, C); encoded: (B, S, C); source_mask: (B, 1, 1, S). Returns (B, T, C)."""
        for layer in self._layers():
            states = layer(states, encoded, source_mask)
        decoded: Tensor = self.norm(states)
        return decoded

    def forward_ragged(self, states: Tensor, encoded: Tensor, target: Ragged, source: Ragged) -> Tensor:
        """states: (N, C); encoded: (M, C); their layouts. Returns (N, C)."""
        for layer in self._layers():
            states = layer.forward_ragged(states, encoded, target, source)
        decoded: Tensor = self.norm(states)
        return decoded

    def start(self, encoded: Tensor, source_mask: Tensor) -> DecoderCache:
        """The cache before the first step; shapes as in `forward`."""
        projected = [layer.source_attention.project(encoded) for layer in self._layers()]
        # Every step reads them whole, and products of scattered rows would copy them each time.
        return DecoderCache([KeyValue(*(part.contiguous() for part in held)) for held in projected], source_mask)

    def step(self, states: Tensor, cache: DecoderCache) -> Tensor:
        """states: (B, 1, C), the next position. Returns (B, 1, C)."""
        for index, layer in enumerate(self._layers()):
            states = layer.step(states, cache, index)
        cache.length += 1
        decoded: Tensor = self.norm(states)
        return decoded

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
