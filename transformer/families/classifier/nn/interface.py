"""The interface of a classifier, of whatever kind, to training, evaluation and inference."""

from abc import abstractmethod

from torch import Tensor

from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.nn.model import Model


class ClassifierModel(Model):
    """Token ids in, class logits out."""

    config: ClassifierConfig

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K). packed: skip the computation of padding, if the model can."""
