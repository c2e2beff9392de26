"""What training, evaluating and predicting need of a classifier, whatever its kind."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from transformer.families.classifier.nn.config import ClassifierConfig


class ClassifierModel(nn.Module, ABC):
    """Token ids in, class logits out."""

    config: ClassifierConfig

    @property
    def d_model(self) -> int:
        """Width of the model."""
        return self.config.model.width

    def pads(self, device: torch.device) -> bool:
        """Whether this device computes the padding of a batch, as all but CPUs do, so that it cannot pack."""
        return device.type != "cpu"

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K). packed: a model that can computes nothing for padding."""
