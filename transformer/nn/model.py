"""The interface that training requires of any network."""

from abc import ABC
from typing import Any

import torch
from torch import nn


class Model(nn.Module, ABC):
    """A network that is trained on batches."""

    config: Any
    """The family's configuration; its `model` holds the model's parameters."""

    @property
    def d_model(self) -> int:
        """Model width."""
        return int(self.config.model.width)

    def pads(self, device: torch.device) -> bool:
        """True if batches are padded on this device, as on all but CPUs, where they are packed."""
        return device.type != "cpu"
