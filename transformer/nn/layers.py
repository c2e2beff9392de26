"""Encoder and decoder, and the parts of their layers (Vaswani et al. 2017, section 3.1)."""

from abc import ABC
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer.nn.attention import KeyValue, MultiHeadAttention
from transformer.nn.config import LayerParams, TransformerParams
from transformer.nn.dropout import Dropout
from transformer.nn.hashed import HashedAttention
from transformer.nn.kernels.attention import Mask
from transformer.nn.kernels.linear import Linear
from transformer.nn.layout import Layout
from transformer.nn.positions import AttentionPositions, attention_positions


class Model(nn.Module, ABC):
    """A network that is trained on batches."""

    config: Any
    """The family's configuration; its `model` holds the model's parameters."""

    @property
    def d_model(self) -> int:
        """Model width."""
        return int(self.config.model.width)

    def pads(self, device: torch.device) -> bool:
        """True if batches are padded on this device, as on all but CPUs, where they are packed."""
        return device.type != "cpu"


_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, params: LayerParams) -> None:
        super().__init__()
        self.inner = Linear(params.d_model, params.d_ff)
        self.activation = _ACTIVATIONS[params.activation]()
        self.dropout = Dropout(params.activation_dropout)
        self.outer = Linear(params.d_ff, params.d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        transformed: Tensor = self.outer(self.dropout(self.activation(self.inner(states))))
        return transformed


class Residual(nn.Module):
    """The residual connection: LayerNorm(x + Dropout(Sublayer(x))), or pre-norm x + Dropout(Sublayer(LayerNorm(x))).

    Post-norm: Vaswani et al. 2017, section 3.1; pre-norm: Xiong et al. 2020.
    """

    def __init__(self, params: LayerParams) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(params.d_model)
        self.dropout = Dropout(params.dropout)
        self.pre = params.norm == "pre"

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """states: (B, T, C); sublayer: (B, T, C) -> (B, T, C). Returns (B, T, C)."""
        dropped: Tensor = self.dropout(sublayer(self.normed(states)))
        total = states + dropped
        return total if self.pre else self.norm(total)

    def normed(self, states: Tensor) -> Tensor:
        """Return what a sublayer reads of `states`."""
        return self.norm(states) if self.pre else states


def final_norm(params: LayerParams) -> nn.Module:
    """Return a pre-norm stack's final layer norm; the identity for post-norm, whose layers already end with one."""
    return nn.LayerNorm(params.d_model) if params.norm == "pre" else nn.Identity()


def multi_head_attention(params: LayerParams, positions: AttentionPositions | None = None) -> MultiHeadAttention:
    """Make multi-head attention with the sizes in `params`; positions: as in `MultiHeadAttention`."""
    return MultiHeadAttention(
        params.d_model,
        params.heads,
        head_dim=params.dimension_of_head,
        dropout=params.attention_dropout,
        positions=positions,
    )


def no_cache(new: KeyValue) -> KeyValue:
    """Return `new` unchanged: the default of `extend`, without cached keys and values."""
    return new


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, params: LayerParams, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = Residual(params)
        self.feed_forward = FeedForward(params)
        self.feed_forward_residual = Residual(params)

    def forward(
        self,
        states: Tensor,
        mask: Mask | None,
        positions: Tensor | None = None,
        *,
        before: Tensor | None = None,
        causal: bool = False,
        extend: Callable[[KeyValue], KeyValue] = no_cache,
    ) -> Tensor:
        """states: (B, S, C), or (N, C) packed. Returns the same shape.

        mask and causal as in `attend`; positions: (S,) or (N,); before: states (B, M, C) that are attended to as well,
        in front of the others; extend: prepends earlier keys and values.
        """

        def attend(x: Tensor) -> Tensor:
            read = x if before is None else torch.cat((self.attention_residual.normed(before), x), dim=1)
            memory = extend(self.attention.project(read, positions))
            attended: Tensor = self.attention(x, memory, mask, causal=causal, positions=positions)
            return attended

        states = self.attention_residual(states, attend)
        encoded: Tensor = self.feed_forward_residual(states, self.feed_forward)
        return encoded


def _encoder_layer(params: TransformerParams) -> EncoderLayer:
    return EncoderLayer(params, multi_head_attention(params, attention_positions(params)))


class Encoder(nn.Module):
    """A stack of encoder layers over embedded tokens."""

    def __init__(self, layers: int, params: TransformerParams) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_encoder_layer(params) for _ in range(layers))
        self.norm = final_norm(params)

    def forward(self, states: Tensor, layout: Layout, *, causal: bool = False) -> Tensor:
        """states: (B, S, C) or (N, C), as `layout` says. Returns the same shape. causal: no token sees a later one."""
        mask = layout.mask(layout, causal=causal)
        for index, layer in enumerate(self.layers):
            states = layer(states, mask, layout.positions, causal=causal, extend=partial(layout.extend, index))
        encoded: Tensor = self.norm(states)
        return encoded


def attend_to_source(
    attention: MultiHeadAttention, states: Tensor, encoded: Tensor | KeyValue, mask: Mask | None
) -> Tensor:
    """Let `states` attend to a source; arguments as in `DecoderLayer.forward`. Returns the shape of `states`."""
    if not isinstance(encoded, KeyValue):
        attended: Tensor = attention(states, attention.project(encoded), mask)
        return attended
    queries = states.reshape(encoded.key.shape[0], -1, states.shape[-1])
    of_rows: Tensor = attention(queries, encoded, mask)
    return of_rows.view_as(states)


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
        extend: Callable[[KeyValue], KeyValue] = no_cache,
    ) -> Tensor:
        """Transform states (B, T, C), or (N, C) packed, into states of the same shape.

        encoded: (B, S, C) or (M, C); or its keys and values (B', H, S, D), each shared by B / B' adjacent rows.
        source_mask, mask: masks of cross-attention and self-attention, as in `attend`; positions: of the states, (T,)
        or (N,); extend: prepends the target's cached keys and values.
        """

        def attend_to_target(x: Tensor) -> Tensor:
            target = extend(self.attention.project(x, positions))
            attended: Tensor = self.attention(x, target, mask, causal=True, positions=positions)
            return attended

        states = self.attention_residual(states, attend_to_target)
        states = self.source_residual(
            states, lambda x: attend_to_source(self.source_attention, x, encoded, source_mask)
        )
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
        """Transform states (B, T, C) or (N, C), as laid out by `target`, into states of the same shape.

        encoded: (B, S, C) or (M, C), or the result of `project`; source_mask: as in `DecoderLayer`.
        """
        mask = target.mask(target, causal=True)
        for index, layer in enumerate(self.layers):
            source = encoded if isinstance(encoded, Tensor) else encoded[index]
            extend = partial(target.extend, index)
            states = layer(states, source, source_mask, mask, positions=target.positions, extend=extend)
        decoded: Tensor = self.norm(states)
        return decoded

    def project(self, encoded: Tensor) -> list[KeyValue]:
        """Return each layer's cross-attention keys and values of the encoded source (B, S, C), to be cached."""
        projected = [
            layer.source_attention.project(encoded) for layer in self.layers if isinstance(layer, DecoderLayer)
        ]
        # Every step reads all of them, and a matrix product would copy non-contiguous ones each time.
        return [KeyValue(*(part.contiguous() for part in held)) for held in projected]


def initialise(module: nn.Module, params: LayerParams) -> None:
    """Initialise matrices Xavier-uniformly (Glorot and Bengio 2010), or as set in `params`; biases keep PyTorch's
    default.
    """
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    for part in module.modules():
        if isinstance(part, nn.Embedding) and params.embedding_init == "normal":
            nn.init.normal_(part.weight, std=params.d_model**-0.5)
        if isinstance(part, nn.ModuleList) and params.residual_init == "scaled":
            _scale_outputs(part)


def _scale_outputs(layers: nn.ModuleList) -> None:
    """Divide the last matrix of every sublayer of a stack by the square root of the number of sublayers."""
    outputs = [part.output for part in layers.modules() if isinstance(part, MultiHeadAttention | HashedAttention)]
    outputs += [part.outer for part in layers.modules() if isinstance(part, FeedForward)]
    for output in outputs:
        output.weight.detach().div_(len(outputs) ** 0.5)


def count_parameters(module: nn.Module) -> int:
    """Count the trainable parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
