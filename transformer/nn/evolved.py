"""The Evolved Transformer: encoder and decoder cells that a search found (So et al. 2019, figure 3).

Each cell is twice as deep as a layer. Where the figure is silent, as in the authors' Tensor2Tensor.
"""

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.attention import KeyValue, MultiHeadAttention
from transformer.nn.config import PositionedParams
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.attention import Mask
from transformer.nn.kernels.linear import Linear
from transformer.nn.layers import FeedForward, Residual, attend_to_source, final_norm, multi_head_attention
from transformer.nn.layout import Layout, Padded
from transformer.nn.positions import attention_positions

FIRST_HEADS = 16
"""Heads of the decoder's first self-attention, at least."""
Slots = Callable[[int, KeyValue], KeyValue]
"""Number of a part of a decoder cell and its new keys and values -> all so far (`Layout.extend`)."""
_SLOTS = 4


class SeparableConvolution(nn.Module):
    """A convolution of each channel alone, then a product that mixes the channels."""

    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        self.each = nn.Conv1d(inputs, inputs, width, groups=inputs, bias=False)
        self.mix = Linear(inputs, outputs)

    def forward(self, states: Tensor) -> Tensor:
        """Map (B, T + width - 1, I) to (B, T, O)."""
        mixed: Tensor = self.mix(self.each(states.transpose(1, 2)).transpose(1, 2))
        return mixed


class GatedLinear(nn.Module):
    """(x W + b) * sigmoid(x V + c) (Dauphin et al. 2017)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.values = Linear(d_model, d_model)
        self.gates = Linear(d_model, d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        gated: Tensor = self.values(states) * self.gates(states).sigmoid()
        return gated


class EncoderBranches(nn.Module):
    """A wide layer beside a convolution over 3 tokens, then a separable one over 9."""

    def __init__(self, params: PositionedParams) -> None:
        super().__init__()
        half = params.d_model // 2
        self.wide = Linear(params.d_model, params.d_ff)
        self.narrow = nn.Conv1d(params.d_model, half, 3, padding=1)
        self.dropout = Dropout(params.dropout)
        self.norm = nn.LayerNorm(params.d_ff)
        self.joined = SeparableConvolution(params.d_ff, half, 9)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Map (B, S, C) to (B, S, C); real: (B, S, 1), False on padding, which convolutions must not see."""
        states = states * real
        wide = self.dropout(self.wide(states).relu())
        narrow = self.dropout(self.narrow(states.transpose(1, 2)).transpose(1, 2).relu())
        joined = self.norm(wide + _widened(narrow, wide.shape[-1])) * real
        return _widened(self.joined(F.pad(joined, (0, 0, 4, 4))), states.shape[-1])


class DecoderBranches(nn.Module):
    """Separable convolutions over 11 and 7 tokens side by side, then one over 7; none sees a later token."""

    def __init__(self, params: PositionedParams) -> None:
        super().__init__()
        width = params.d_model
        self.left = SeparableConvolution(width, 2 * width, 11)
        self.right = SeparableConvolution(width, width // 2, 7)
        self.dropout = Dropout(params.dropout)
        self.norm = nn.LayerNorm(2 * width)
        self.joined = SeparableConvolution(2 * width, width, 7)

    def forward(self, states: Tensor, slots: Slots) -> Tensor:
        """Map (B, T, C) to (B, T, C); slots: prepends what steps before have read."""
        length = states.shape[1]
        seen = _extended(states, 0, slots)
        left = self.dropout(self.left(_last(seen, length + 10)).relu())
        right = self.dropout(self.right(_last(seen, length + 6)))
        joined = _extended(self.norm(left + _widened(right, left.shape[-1])), 1, slots)
        found: Tensor = self.joined(_last(joined, length + 6))
        return found


def _widened(states: Tensor, width: int) -> Tensor:
    """Add channels of zeros: (..., C) -> (..., width)."""
    return F.pad(states, (0, width - states.shape[-1]))


def _extended(states: Tensor, slot: int, slots: Slots) -> Tensor:
    """Put the states that earlier steps read in front of states (B, T, C)."""
    return slots(slot, KeyValue(states[:, None], states[:, None, :, :0])).key[:, 0]


def _last(states: Tensor, count: int) -> Tensor:
    """Return the last `count` of states (B, T, C), after zeros if there are fewer."""
    return F.pad(states, (0, 0, max(0, count - states.shape[1]), 0))[:, -count:]


class EvolvedEncoderLayer(nn.Module):
    """Gated linear unit, convolutions, self-attention, feed-forward."""

    def __init__(self, params: PositionedParams) -> None:
        super().__init__()
        self.gated, self.gated_residual = GatedLinear(params.d_model), Residual(params)
        self.branches, self.branches_residual = EncoderBranches(params), Residual(params)
        self.attention = multi_head_attention(params, attention_positions(params))
        self.attention_residual = Residual(params)
        self.feed_forward, self.feed_forward_residual = FeedForward(params), Residual(params)

    def forward(self, states: Tensor, mask: Mask | None, positions: Tensor, real: Tensor) -> Tensor:
        """Map (B, S, C) to (B, S, C); mask, positions: as in `EncoderLayer`; real: as in `EncoderBranches`."""

        def attend(x: Tensor) -> Tensor:
            attended: Tensor = self.attention(x, self.attention.project(x, positions), mask, positions=positions)
            return attended

        states = self.gated_residual(states, self.gated)
        states = self.branches_residual(states, lambda x: self.branches(x, real))
        states = self.attention_residual(states, attend)
        encoded: Tensor = self.feed_forward_residual(states, self.feed_forward)
        return encoded


class EvolvedEncoder(nn.Module):
    """A stack of evolved encoder cells over embedded tokens."""

    def __init__(self, layers: int, params: PositionedParams) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EvolvedEncoderLayer(params) for _ in range(layers))
        self.norm = final_norm(params)

    def forward(self, states: Tensor, layout: Layout) -> Tensor:
        """Map (B, S, C) to (B, S, C)."""
        assert isinstance(layout, Padded)
        mask, real = layout.mask(layout), (layout.token_ids != layout.pad_id)[:, :, None]
        for layer in self.layers:
            states = layer(states, mask, layout.positions, real)
        encoded: Tensor = self.norm(states)
        return encoded


class SwishFeedForward(nn.Module):
    """LayerNorm(swish(x W_1 + b_1)) W_2 + b_2 (Ramachandran et al. 2017)."""

    def __init__(self, params: PositionedParams) -> None:
        super().__init__()
        self.inner = Linear(params.d_model, params.d_ff)
        self.dropout = Dropout(params.activation_dropout)
        self.norm = nn.LayerNorm(params.d_ff)
        self.outer = Linear(params.d_ff, params.d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        transformed: Tensor = self.outer(self.norm(self.dropout(F.silu(self.inner(states)))))
        return transformed


class EvolvedDecoderLayer(nn.Module):
    """Self-attention beside attention to the source, convolutions, both attentions again, feed-forward."""

    def __init__(self, params: PositionedParams) -> None:
        super().__init__()
        heads, dropout = max(FIRST_HEADS, params.heads), params.attention_dropout
        self.first_attention = MultiHeadAttention(
            params.d_model, heads, head_dim=params.d_model // heads, dropout=dropout
        )
        self.first_source_attention = multi_head_attention(params)
        self.first_residual = Residual(params)
        self.branches, self.branches_residual = DecoderBranches(params), Residual(params)
        self.attention = multi_head_attention(params, attention_positions(params))
        self.attention_residual = Residual(params)
        self.source_attention = multi_head_attention(params)
        self.source_residual = Residual(params)
        self.feed_forward, self.feed_forward_residual = SwishFeedForward(params), Residual(params)

    def forward(
        self,
        states: Tensor,
        sources: Sequence[Tensor | KeyValue],
        source_mask: Mask | None,
        mask: Mask | None,
        positions: Tensor,
        slots: Slots,
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C). sources: for both attentions to it; the others as in `DecoderLayer`."""

        def attend(part: MultiHeadAttention, x: Tensor, slot: int) -> Tensor:
            target = slots(slot, part.project(x, positions))
            attended: Tensor = part(x, target, mask, causal=True, positions=positions)
            return attended

        def both(x: Tensor) -> Tensor:
            from_source = attend_to_source(self.first_source_attention, x, sources[0], source_mask)
            return attend(self.first_attention, x, 2) + from_source

        states = self.first_residual(states, both)
        states = self.branches_residual(states, lambda x: self.branches(x, slots))
        states = self.attention_residual(states, lambda x: attend(self.attention, x, 3))
        states = self.source_residual(
            states, lambda x: attend_to_source(self.source_attention, x, sources[1], source_mask)
        )
        decoded: Tensor = self.feed_forward_residual(states, self.feed_forward)
        return decoded


class EvolvedDecoder(nn.Module):
    """A stack of evolved decoder cells over embedded target tokens."""

    def __init__(self, layers: int, params: PositionedParams) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EvolvedDecoderLayer(params) for _ in range(layers))
        self.norm = final_norm(params)

    def forward(
        self, states: Tensor, target: Layout, encoded: Tensor | Sequence[KeyValue], source_mask: Mask | None
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C); encoded: (B, S, C), or the result of `project`."""
        mask = target.mask(target, causal=True)
        for index, layer in enumerate(self.layers):
            sources = [encoded] * 2 if isinstance(encoded, Tensor) else encoded[2 * index : 2 * index + 2]

            def slots(slot: int, new: KeyValue, first: int = _SLOTS * index) -> KeyValue:
                return target.extend(first + slot, new)

            states = layer(states, sources, source_mask, mask, target.positions, slots)
        decoded: Tensor = self.norm(states)
        return decoded

    def project(self, encoded: Tensor) -> list[KeyValue]:
        """Return the keys and values of the encoded source (B, S, C): of each cell's first and second attention."""
        parts = [
            part
            for layer in self.layers
            if isinstance(layer, EvolvedDecoderLayer)
            for part in (layer.first_source_attention, layer.source_attention)
        ]
        return [KeyValue(*(each.contiguous() for each in part.project(encoded))) for part in parts]
