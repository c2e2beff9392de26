"""The decoder: causal self-attention, attention to the source, feed-forward (Vaswani et al. 2017, section 3.1)."""

from torch import Tensor, nn

from transformer.nn.attention import KeyValue, MultiHeadAttention
from transformer.nn.config import TransformerParams
from transformer.nn.layers import FeedForward, Residual, final_norm
from transformer.nn.seq2seq.cache import DecoderCache


class DecoderLayer(nn.Module):
    """One layer, for a whole target at once (training) or for its next position (generation)."""

    def __init__(self, params: TransformerParams) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(params.d_model, params.heads, dropout=params.attention_dropout)
        self.attention_residual = Residual(params)
        self.source_attention = MultiHeadAttention(params.d_model, params.heads, dropout=params.attention_dropout)
        self.source_residual = Residual(params)
        self.feed_forward = FeedForward(params)
        self.feed_forward_residual = Residual(params)

    def forward(self, states: Tensor, source: KeyValue, source_mask: Tensor) -> Tensor:
        """states: (B, T, C), all target positions; source_mask: (B, 1, 1, S). Returns (B, T, C)."""
        states = self.attention_residual(states, lambda x: self.attention(x, self.attention.project(x), causal=True))
        return self._after_self_attention(states, source, source_mask)

    def step(self, states: Tensor, cache: DecoderCache, layer: int) -> Tensor:
        """states: (B, 1, C), the next position; the cache grows by it. Returns (B, 1, C)."""
        states = self.attention_residual(
            states, lambda x: self.attention(x, cache.extend(layer, self.attention.project(x)))
        )
        folded = self._after_self_attention(cache.by_source(states), cache.source[layer], cache.source_mask)
        return folded.view_as(states)

    def _after_self_attention(self, states: Tensor, source: KeyValue, source_mask: Tensor) -> Tensor:
        states = self.source_residual(states, lambda x: self.source_attention(x, source, source_mask))
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
            states = layer(states, layer.source_attention.project(encoded), source_mask)
        decoded: Tensor = self.norm(states)
        return decoded

    def start(self, encoded: Tensor, source_mask: Tensor) -> DecoderCache:
        """The cache before the first step; shapes as in `forward`."""
        return DecoderCache([layer.source_attention.project(encoded) for layer in self._layers()], source_mask)

    def step(self, states: Tensor, cache: DecoderCache) -> Tensor:
        """states: (B, 1, C), the next position. Returns (B, 1, C)."""
        for index, layer in enumerate(self._layers()):
            states = layer.step(states, cache, index)
        cache.length += 1
        decoded: Tensor = self.norm(states)
        return decoded

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
