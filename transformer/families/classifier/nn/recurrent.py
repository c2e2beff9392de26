"""Recurrent network with a classification head."""

import torch
from torch import Tensor, nn

from transformer.families.classifier.nn.config import ClassifierConfig, RecurrentClassifierParams
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.recurrent import Recurrence, Recurrent


class RecurrentClassifier(ClassifierModel):
    """Maps token ids to class logits with a recurrent encoder."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, RecurrentClassifierParams)
        self.config = config
        self.pooling = params.pooling
        self.embedding = nn.Embedding(config.size, params.embedding)
        self.encoder = Recurrent(
            params.cell,
            params.embedding,
            params.hidden,
            layers=params.layers,
            bidirectional=params.bidirectional,
            dropout=params.dropout,
        )
        self.dropout = Dropout(params.dropout)
        self.output = Linear(self.encoder.width, config.classes)

    def pads(self, device: torch.device) -> bool:
        """False on every device: each step processes only the sequences that have not ended."""
        return False

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the logits (B, K) of token_ids (B, S). Padding is never computed."""
        real = token_ids != self.config.pad_id
        recurrence = self.encoder(self.dropout(self.embedding(token_ids)), real)
        logits: Tensor = self.output(self.dropout(self._pool(recurrence, real[:, :, None])))
        return logits

    def _pool(self, recurrence: Recurrence, real: Tensor) -> Tensor:
        """Pool token states to (B, C'). real: (B, S, 1), False at padding."""
        if self.pooling == "last":
            return recurrence.final[-1][0]
        if self.pooling == "max":
            return recurrence.states.masked_fill(~real, float("-inf")).amax(dim=1)
        return recurrence.states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)
