"""Transformer encoder with a classification head, and the factory of neural classifiers."""

import torch
from torch import Tensor, nn

from transformer.families.classifier.interface import (
    ClassifierConfig,
    ClassifierModel,
    ClassifierParams,
    RecurrentClassifierParams,
)
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.layers import Encoder, initialise
from transformer.nn.layout import layout_of
from transformer.nn.positions import TokenEmbedding, embedding_positions
from transformer.nn.recurrent import Recurrent


class FirstPooling(nn.Module):
    """The state of the first position."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states[:, 0]


class MeanPooling(nn.Module):
    """The mean over real tokens."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


class MaxPooling(nn.Module):
    """The maximum of each dimension over real tokens."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states.masked_fill(~real, float("-inf")).amax(dim=1)


class AttentionPooling(nn.Module):
    """The mean weighted by softmax(u^T tanh(W h + b)) (Yang et al. 2016, eqs. 5-7)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.hidden = Linear(d_model, d_model)
        self.score = Linear(d_model, 1, bias=False)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        scores = self.score(torch.tanh(self.hidden(states))).masked_fill(~real, float("-inf"))
        pooled: Tensor = (scores.softmax(dim=1).to(states.dtype) * states).sum(dim=1)
        return pooled


def make_pooling(params: ClassifierParams) -> nn.Module:
    """Return the module selected by `params.pooling`."""
    if params.pooling == "attention":
        return AttentionPooling(params.d_model)
    if params.pooling == "mean":
        return MeanPooling()
    return MaxPooling() if params.pooling == "max" else FirstPooling()


class RecurrentClassifier(ClassifierModel):
    """Maps token ids to class logits with a recurrent encoder."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, RecurrentClassifierParams)
        self.config = config
        self.embedding = nn.Embedding(config.size, params.embedding)
        self.encoder = Recurrent(params.layers, params)
        self.pooling = {"mean": MeanPooling(), "max": MaxPooling()}.get(params.pooling)
        self.dropout = Dropout(params.dropout)
        self.output = Linear(self.encoder.width, config.classes)

    def pads(self, device: torch.device) -> bool:
        """False on every device: each step processes only the sequences that have not ended."""
        return False

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the logits (B, K) of token_ids (B, S). Padding is never computed."""
        real = token_ids != self.config.pad_id
        states, (last, *_) = self.encoder(self.dropout(self.embedding(token_ids)), real)
        logits: Tensor = self.output(self.dropout(self.pool(states, last, real)))
        return logits

    def pool(self, states: Tensor, last: Tensor, real: Tensor) -> Tensor:
        """Pool token states (B, S, C) and the last ones (B, C) to (B, C). real: (B, S), False at padding."""
        pooled: Tensor = last if self.pooling is None else self.pooling(states, real[:, :, None])
        return pooled


class TransformerClassifier(ClassifierModel):
    """Maps token ids to class logits with a Transformer encoder."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, ClassifierParams)
        self.config = config
        self.extra = int(params.pooling == "cls")
        tokens = nn.Embedding(config.size + self.extra, params.d_model)
        self.embedding = TokenEmbedding(tokens, embedding_positions(params, extra=self.extra), params)
        self.encoder = Encoder(params.layers, params)
        self.pooling = make_pooling(params)
        self.dropout = Dropout(params.dropout)
        self.output = Linear(params.d_model, config.classes)
        initialise(self, params)

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the logits (B, K) of token_ids (B, S). packed: skip computation on padding."""
        layout = layout_of(self._with_cls(token_ids), self.config.pad_id, packed=packed)
        states = self.encoder(self.embedding(layout.token_ids, layout.positions), layout)
        logits: Tensor = self.output(self.dropout(layout.pooled(states, self.pooling)))
        return logits

    def _with_cls(self, token_ids: Tensor) -> Tensor:
        """Prepend a [CLS] token to token_ids (B, S) if pooling needs one; its id follows the vocabulary's."""
        if not self.extra:
            return token_ids
        return torch.cat((torch.full_like(token_ids[:, :1], self.config.size), token_ids), dim=1)


def build_model(config: ClassifierConfig) -> ClassifierModel:
    """Return a new model with weights drawn from torch's default generator."""
    if isinstance(config.model, RecurrentClassifierParams):
        return RecurrentClassifier(config)
    return TransformerClassifier(config)
