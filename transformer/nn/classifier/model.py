"""A Transformer encoder with a classification head."""

from torch import Tensor, nn

from transformer.nn.attention import padding_mask
from transformer.nn.classifier.config import ClassifierConfig, ClassifierParams
from transformer.nn.classifier.interface import ClassifierModel
from transformer.nn.dropout import Dropout
from transformer.nn.layers import Encoder, initialise
from transformer.nn.positions import TokenEmbedding


class TransformerClassifier(ClassifierModel):
    """Token ids in, class logits out."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, ClassifierParams)
        self.config = config
        self.pooling = params.pooling
        self.embedding = TokenEmbedding(config.size, params)
        self.encoder = Encoder(params.layers, params)
        self.dropout = Dropout(params.dropout)
        self.output = nn.Linear(params.d_model, config.classes)
        initialise(self, params)

    def forward(self, token_ids: Tensor) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K)."""
        mask = padding_mask(token_ids, self.config.pad_id)
        states = self.encoder(self.embedding(token_ids), mask)
        logits: Tensor = self.output(self.dropout(self._pool(states, mask[:, 0, 0, :, None])))
        return logits

    def _pool(self, states: Tensor, real: Tensor) -> Tensor:
        """states: (B, S, C); real: (B, S, 1), False on padding. Returns (B, C)."""
        if self.pooling == "first":
            return states[:, 0]
        if self.pooling == "max":
            return states.masked_fill(~real, float("-inf")).amax(dim=1)
        return states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)
