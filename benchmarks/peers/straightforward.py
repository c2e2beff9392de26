"""The Transformer as in the public notebooks, following the paper's figures step by step.

Full score matrices, fp32, post-norm, padded batches, logits at every position. The layers have the same parameters as
ours, so that our weights can be copied. Shapes: B rows, T target and S source positions, C model dimensions, V words.
"""

import math

import torch
from torch import Tensor, nn

from transformer.core.errors import UserError
from transformer.families.classifier.interface import ClassifierParams
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.nn.config import TransformerParams
from transformer.nn.positions import sinusoidal_table

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


def seed_params(config: Seq2SeqConfig) -> Seq2SeqParams:
    """The model's parameters. Raises UserError where the peers cannot express them."""
    params = config.model
    if (
        isinstance(params, Seq2SeqParams)
        and (params.norm, params.activation) == ("post", "relu")
        and params.positions in ("learned", "sinusoidal")
        and config.source_pad_id == config.target_pad_id
    ):
        return params
    raise UserError("the peers support only the seed's architecture: compare with the profile `seed`")


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
        weights = torch.softmax(scores.masked_fill(mask == 0, -1e10), dim=-1)
        attended = self.dropout(weights) @ value
        merged: Tensor = self.output(attended.transpose(1, 2).contiguous().flatten(2))
        return merged

    def _heads(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


class Layer(nn.Module):
    """Self-attention, attention to the source in a decoder, feed-forward; each with its norm."""

    def __init__(self, params: TransformerParams, decoder: bool = False) -> None:
        super().__init__()
        self.attention = Attention(params.d_model, params.heads, params.attention_dropout)
        self.attention_norm = nn.LayerNorm(params.d_model)
        if decoder:
            self.source_attention = Attention(params.d_model, params.heads, params.attention_dropout)
            self.source_norm = nn.LayerNorm(params.d_model)
        self.inner = nn.Linear(params.d_model, params.d_ff)
        self.outer = nn.Linear(params.d_ff, params.d_model)
        self.feed_forward_norm = nn.LayerNorm(params.d_model)
        self.dropout = nn.Dropout(params.dropout)
        self.inner_dropout = nn.Dropout(params.activation_dropout)

    def forward(
        self, states: Tensor, mask: Tensor, encoded: Tensor | None = None, source_mask: Tensor | None = None
    ) -> Tensor:
        """states: (B, T, C); mask: (B, 1, 1 or T, T); encoded: (B, S, C); source_mask: (B, 1, 1, S)."""
        states = self.attention_norm(states + self.dropout(self.attention(states, states, mask)))
        if encoded is not None:
            states = self.source_norm(states + self.dropout(self.source_attention(states, encoded, source_mask)))
        hidden = self.inner_dropout(torch.relu(self.inner(states)))
        normed: Tensor = self.feed_forward_norm(states + self.dropout(self.outer(hidden)))
        return normed


class Embedding(nn.Module):
    """Scaled token embedding plus positions, learned or sinusoidal."""

    def __init__(self, size: int, params: TransformerParams) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, params.d_model)
        self.scale = math.sqrt(params.d_model)
        self.dropout = nn.Dropout(params.dropout)
        self.positions = nn.Embedding(params.max_length, params.d_model)
        if params.positions == "sinusoidal":
            self.positions.weight = nn.Parameter(sinusoidal_table(params.max_length, params.d_model), False)

    def forward(self, token_ids: Tensor) -> Tensor:
        places = torch.arange(token_ids.shape[1], device=token_ids.device).expand_as(token_ids)
        dropped: Tensor = self.dropout(self.tokens(token_ids) * self.scale + self.positions(places))
        return dropped


class StraightforwardTranslator(nn.Module):
    """The encoder-decoder: source ids (B, S) and target ids (B, T) to logits (B, T, V)."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params, self.pad_id = seed_params(config), config.target_pad_id
        self.source_embedding = Embedding(config.source_size, params)
        self.encoder = nn.ModuleList(Layer(params) for _ in range(params.encoder_layers))
        self.target_embedding = Embedding(config.target_size, params)
        self.decoder = nn.ModuleList(Layer(params, decoder=True) for _ in range(params.decoder_layers))
        self.output = nn.Linear(params.d_model, config.target_size)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask, encoded = (source != self.pad_id)[:, None, None, :], self.source_embedding(source)
        for layer in self.encoder:
            encoded = layer(encoded, source_mask)
        length = target.shape[1]
        earlier = torch.tril(torch.ones(length, length, dtype=torch.bool, device=target.device))
        mask, states = (target != self.pad_id)[:, None, None, :] & earlier, self.target_embedding(target)
        for layer in self.decoder:
            states = layer(states, mask, encoded, source_mask)
        logits: Tensor = self.output(states)
        return logits


class StraightforwardClassifier(nn.Module):
    """An encoder and a linear layer on the first token's state: ids (B, S) to logits (B, K)."""

    def __init__(self, params: ClassifierParams, size: int, pad_id: int, classes: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embedding = Embedding(size, params)
        self.encoder = nn.ModuleList(Layer(params) for _ in range(params.layers))
        self.dropout = nn.Dropout(params.dropout)
        self.output = nn.Linear(params.d_model, classes)

    def forward(self, token_ids: Tensor) -> Tensor:
        mask, states = (token_ids != self.pad_id)[:, None, None, :], self.embedding(token_ids)
        for layer in self.encoder:
            states = layer(states, mask)
        logits: Tensor = self.output(self.dropout(states[:, 0]))
        return logits


def load_into_ours(model: nn.Module, ours: nn.Module) -> None:
    """Copy the weights of one of these models into ours of the same size."""
    state = model.state_dict()
    ours.load_state_dict({name: state[renamed(name)] for name in ours.state_dict()})


def renamed(name: str) -> str:
    for ours, here in _NAMES:
        name = name.replace(ours, here)
    return name
