"""The Transformer as in the public notebooks, following the paper's figures step by step.

Full score matrices, fp32, post-norm, padded batches, logits at every position. The layers have the same parameters as
ours, so that our weights can be copied: `load_ours`.
"""

import math

import torch
from torch import Tensor, nn

from benchmarks.peers.positions import require_added
from transformer.families.classifier.nn.config import ClassifierParams
from transformer.families.seq2seq.nn.config import Seq2SeqParams
from transformer.nn.config import TransformerParams
from transformer.nn.positions import sinusoidal_table

_HIDDEN = -1e10

# Parts of our weights' names, and of these models'.
_NAMES = (
    ("encoder.layers.", "encoder."),
    ("decoder.layers.", "decoder."),
    ("attention_residual.norm", "attention_norm"),
    ("source_residual.norm", "source_norm"),
    ("feed_forward_residual.norm", "feed_forward_norm"),
    ("feed_forward.inner", "inner"),
    ("feed_forward.outer", "outer"),
    ("positions.table", "positions"),
)


class Attention(nn.Module):
    """Multi-head attention that materializes all scores."""

    def __init__(self, d_model: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """states: (B, T, C); memory: (B, S, C); mask: broadcastable to (B, 1, T, S). Returns (B, T, C)."""
        query, key, value = (self._heads(x) for x in (self.query(states), self.key(memory), self.value(memory)))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        weights = torch.softmax(scores.masked_fill(mask == 0, _HIDDEN), dim=-1)
        attended = self.dropout(weights) @ value
        merged: Tensor = self.output(attended.transpose(1, 2).contiguous().flatten(2))
        return merged

    def _heads(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


class _Layer(nn.Module):
    """The common part of encoder and decoder layers: self-attention and feed-forward with their norms."""

    def __init__(self, params: TransformerParams) -> None:
        super().__init__()
        self.attention = Attention(params.d_model, params.heads, params.attention_dropout)
        self.attention_norm = nn.LayerNorm(params.d_model)
        self.inner = nn.Linear(params.d_model, params.d_ff)
        self.outer = nn.Linear(params.d_ff, params.d_model)
        self.feed_forward_norm = nn.LayerNorm(params.d_model)
        self.dropout = nn.Dropout(params.dropout)
        self.inner_dropout = nn.Dropout(params.activation_dropout)

    def _attend(self, states: Tensor, mask: Tensor) -> Tensor:
        attended: Tensor = self.attention_norm(states + self.dropout(self.attention(states, states, mask)))
        return attended

    def _feed_forward(self, states: Tensor) -> Tensor:
        hidden = self.inner_dropout(torch.relu(self.inner(states)))
        normed: Tensor = self.feed_forward_norm(states + self.dropout(self.outer(hidden)))
        return normed


class EncoderLayer(_Layer):
    """Self-attention, feed-forward."""

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states: (B, S, C); mask: (B, 1, 1, S)."""
        return self._feed_forward(self._attend(states, mask))


class DecoderLayer(_Layer):
    """Causal self-attention, attention to the source, feed-forward."""

    def __init__(self, params: TransformerParams) -> None:
        super().__init__(params)
        self.source_attention = Attention(params.d_model, params.heads, params.attention_dropout)
        self.source_norm = nn.LayerNorm(params.d_model)

    def forward(self, states: Tensor, encoded: Tensor, mask: Tensor, source_mask: Tensor) -> Tensor:
        """states: (B, T, C); encoded: (B, S, C); mask: (B, 1, T, T); source_mask: (B, 1, 1, S)."""
        states = self._attend(states, mask)
        attended = self.source_attention(states, encoded, source_mask)
        return self._feed_forward(self.source_norm(states + self.dropout(attended)))


class Embedding(nn.Module):
    """Scaled token embedding plus positions, learned or sinusoidal."""

    def __init__(self, size: int, params: TransformerParams) -> None:
        """Raises UserError for other positions."""
        super().__init__()
        require_added(params)
        self.tokens = nn.Embedding(size, params.d_model)
        self.scale = math.sqrt(params.d_model)
        self.dropout = nn.Dropout(params.dropout)
        self.positions = nn.Embedding(params.max_length, params.d_model)
        if params.positions == "sinusoidal":
            self.positions.weight = nn.Parameter(sinusoidal_table(params.max_length, params.d_model), False)

    def forward(self, token_ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, C)."""
        places = torch.arange(token_ids.shape[1], device=token_ids.device).expand_as(token_ids)
        dropped: Tensor = self.dropout(self.tokens(token_ids) * self.scale + self.positions(places))
        return dropped


class StraightforwardTranslator(nn.Module):
    """The encoder-decoder."""

    def __init__(self, params: Seq2SeqParams, source_size: int, target_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.source_embedding = Embedding(source_size, params)
        self.encoder = nn.ModuleList(EncoderLayer(params) for _ in range(params.encoder_layers))
        self.target_embedding = Embedding(target_size, params)
        self.decoder = nn.ModuleList(DecoderLayer(params) for _ in range(params.decoder_layers))
        self.output = nn.Linear(params.d_model, target_size)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The encoded source (B, S, C) and its mask (B, 1, 1, S); source: (B, S)."""
        mask = (source != self.pad_id)[:, None, None, :]
        states = self.source_embedding(source)
        for layer in self.encoder:
            states = layer(states, mask)
        return states, mask

    def decode(self, target: Tensor, encoded: Tensor, source_mask: Tensor) -> Tensor:
        """The logits (B, T, V) of every position; target: (B, T)."""
        length = target.shape[1]
        earlier = torch.tril(torch.ones(length, length, dtype=torch.bool, device=target.device))
        mask = (target != self.pad_id)[:, None, None, :] & earlier
        states = self.target_embedding(target)
        for layer in self.decoder:
            states = layer(states, encoded, mask, source_mask)
        logits: Tensor = self.output(states)
        return logits

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source: (B, S); target: (B, T). Returns logits (B, T, V)."""
        return self.decode(target, *self.encode(source))


class StraightforwardClassifier(nn.Module):
    """An encoder and a linear layer on the first token's state."""

    def __init__(self, params: ClassifierParams, size: int, pad_id: int, classes: int) -> None:
        super().__init__()
        assert params.pooling == "first"
        self.pad_id = pad_id
        self.embedding = Embedding(size, params)
        self.encoder = nn.ModuleList(EncoderLayer(params) for _ in range(params.layers))
        self.dropout = nn.Dropout(params.dropout)
        self.output = nn.Linear(params.d_model, classes)

    def forward(self, token_ids: Tensor) -> Tensor:
        """(B, S) -> logits (B, K)."""
        mask = (token_ids != self.pad_id)[:, None, None, :]
        states = self.embedding(token_ids)
        for layer in self.encoder:
            states = layer(states, mask)
        logits: Tensor = self.output(self.dropout(states[:, 0]))
        return logits


def load_ours(model: nn.Module, ours: nn.Module) -> None:
    """Copy the weights of one of our models of the same size. Raises RuntimeError if they do not match."""
    state = {_renamed(name): tensor for name, tensor in ours.state_dict().items()}
    table = {name for name in model.state_dict() if name.endswith("positions.weight")} - state.keys()  # sinusoidal
    result = model.load_state_dict(state, strict=False)
    if result.unexpected_keys or set(result.missing_keys) != table:
        raise RuntimeError(f"the weights do not match the model: {result}")


def load_into_ours(model: nn.Module, ours: nn.Module) -> None:
    """The reverse: copy the weights of `model` into `ours`."""
    state = model.state_dict()
    ours.load_state_dict({name: state[_renamed(name)] for name in ours.state_dict()})


def _renamed(name: str) -> str:
    for theirs, here in _NAMES:
        name = name.replace(theirs, here)
    return name
