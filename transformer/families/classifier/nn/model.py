"""A Transformer encoder with a classification head."""

import torch
from torch import Tensor, nn

from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.pooling import make_pooling
from transformer.nn.attention import padding_mask
from transformer.nn.dropout import Dropout
from transformer.nn.layers import Encoder, initialise
from transformer.nn.positions import TokenEmbedding
from transformer.nn.ragged import Ragged, groups_of_like_length


class TransformerClassifier(ClassifierModel):
    """Token ids in, class logits out."""

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, ClassifierParams)
        self.config = config
        self.extra = int(params.pooling == "cls")
        tokens = nn.Embedding(config.size + self.extra, params.d_model)
        self.embedding = TokenEmbedding(tokens, params, extra_positions=self.extra)
        self.encoder = Encoder(params.layers, params)
        self.pooling = make_pooling(params)
        self.dropout = Dropout(params.dropout)
        self.output = nn.Linear(params.d_model, config.classes)
        initialise(self, params)

    def forward(self, token_ids: Tensor) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K)."""
        token_ids = self._with_cls(token_ids)
        mask = padding_mask(token_ids, self.config.pad_id)
        states = self.encoder(self.embedding(token_ids), mask)
        logits: Tensor = self.output(self.dropout(self.pooling(states, mask[:, 0, 0, :, None])))
        return logits

    def forward_ragged(self, token_ids: Tensor) -> Tensor:
        """As `ClassifierModel.forward_ragged`."""
        if token_ids.device.type != "cpu":
            return super().forward_ragged(token_ids)
        token_ids = self._with_cls(token_ids)
        groups = groups_of_like_length((token_ids != self.config.pad_id).sum(dim=1))
        layout = Ragged(token_ids, self.config.pad_id, groups)
        states = self.encoder(self.embedding.at(layout.token_ids, layout.positions), None, layout)
        blocks = zip(layout.split(states), layout.places, strict=True)
        pooled = torch.cat([self.pooling(block, real) for block, real in blocks])
        original = torch.empty(len(token_ids), dtype=torch.int64)
        original[torch.cat([torch.from_numpy(rows) for rows in groups])] = torch.arange(len(token_ids))
        logits: Tensor = self.output(self.dropout(pooled[original]))
        return logits

    def _with_cls(self, token_ids: Tensor) -> Tensor:
        """token_ids (B, S) after a [CLS] token, the entry behind the vocabulary's, where pooling wants one."""
        if not self.extra:
            return token_ids
        return torch.cat((torch.full_like(token_ids[:, :1], self.config.size), token_ids), dim=1)
