"""The interface of a classifier, of whatever kind, to training, evaluation and inference."""

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
        """Whether batches are padded on this device, as on all but CPUs, rather than packed."""
        return device.type != "cpu"

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K). packed: skip the computation of padding, if the model can."""
