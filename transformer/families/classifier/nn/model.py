"""Transformer encoder with a classification head, and the factory of neural classifiers."""

import torch
from torch import Tensor, nn

from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams, RecurrentClassifierParams
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.pooling import make_pooling
from transformer.families.classifier.nn.recurrent import RecurrentClassifier
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.layers import Encoder, initialise
from transformer.nn.layout import layout_of
from transformer.nn.positions import TokenEmbedding, embedding_positions


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
