"""The decoder: causal self-attention, attention to the source, feed-forward (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from transformer.nn.attention import KeyValue
from transformer.nn.config import TransformerParams
from transformer.nn.kernels.attention import Mask
from transformer.nn.layers import FeedForward, Residual, alone, final_norm, multi_head_attention
from transformer.nn.layout import Layout
from transformer.nn.positions import attention_positions


class DecoderLayer(nn.Module):
    """One layer, for a whole target at once (training) or for its next position (generation)."""

    def __init__(self, params: TransformerParams) -> None:
        super().__init__()
        self.attention = multi_head_attention(params, attention_positions(params))
        self.attention_residual = Residual(params)
        self.source_attention = multi_head_attention(params)
        self.source_residual = Residual(params)
        self.feed_forward = FeedForward(params)
        self.feed_forward_residual = Residual(params)

    def forward(
        self,
        states: Tensor,
        encoded: Tensor | KeyValue,
        source_mask: Mask | None,
        mask: Mask | None = None,
        *,
        positions: Tensor | None = None,
        extend: Callable[[KeyValue], KeyValue] = alone,
    ) -> Tensor:
        """states: (B, T, C), or (N, C) packed. Returns the same shape.

        encoded: (B, S, C) or (M, C); or its keys and values (B', H, S, D), each shared by B / B' adjacent rows.
        source_mask, mask: masks of the attention to the source and to the target, as in `attend`; positions: those of
        the states, (T,) or (N,); extend: prepends the earlier keys and values of the target.
        """
        source = encoded if isinstance(encoded, KeyValue) else self.source_attention.project(encoded)

        def attend_to_target(x: Tensor) -> Tensor:
            target = extend(self.attention.project(x, positions))
            attended: Tensor = self.attention(x, target, mask, causal=True, positions=positions)
            return attended

        def attend_to_source(x: Tensor) -> Tensor:
            queries = x if source is not encoded else x.reshape(len(source.key), -1, x.shape[-1])
            attended: Tensor = self.source_attention(queries, source, source_mask)
            return attended.view_as(x)

        states = self.attention_residual(states, attend_to_target)
        states = self.source_residual(states, attend_to_source)
        decoded: Tensor = self.feed_forward_residual(states, self.feed_forward)
        return decoded


class Decoder(nn.Module):
    """A stack of decoder layers over embedded target tokens."""

    def __init__(self, layers: int, params: TransformerParams) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(params) for _ in range(layers))
        self.norm = final_norm(params)

    def forward(
        self, states: Tensor, target: Layout, encoded: Tensor | Sequence[KeyValue], source_mask: Mask | None
    ) -> Tensor:
        """states: (B, T, C) or (N, C), as `target` says. Returns the same shape.

        encoded: (B, S, C) or (M, C), or what `project` made of it; source_mask: as in `DecoderLayer`.
        """
        mask = target.mask(target, causal=True)
        for index, layer in enumerate(self.layers):
            source = encoded if isinstance(encoded, Tensor) else encoded[index]
            extend = partial(target.extend, index)
            states = layer(states, source, source_mask, mask, positions=target.positions, extend=extend)
        decoded: Tensor = self.norm(states)
        return decoded

    def project(self, encoded: Tensor) -> list[KeyValue]:
        """The keys and values of the encoded source (B, S, C) for each layer's attention, to be cached."""
        projected = [
            layer.source_attention.project(encoded) for layer in self.layers if isinstance(layer, DecoderLayer)
        ]
        # Every step reads all of them, and a matrix product would copy non-contiguous ones each time.
        return [KeyValue(*(part.contiguous() for part in held)) for held in projected]
