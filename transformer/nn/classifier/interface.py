"""What training, evaluating and predicting need of a classifier, whatever its kind."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from transformer.nn.classifier.config import ClassifierConfig


class ClassifierModel(nn.Module, ABC):
    """Token ids in, class logits out."""

    config: ClassifierConfig

    @abstractmethod
    def forward(self, token_ids: Tensor) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K)."""
