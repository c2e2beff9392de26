"""What training needs of a network, whatever its family."""

from abc import ABC
from typing import Any

import torch
from torch import nn


class Model(nn.Module, ABC):
    """A network that is trained on batches."""

    config: Any
    """The family's; it has the model's parameters as `model`."""

    @property
    def d_model(self) -> int:
        """Width of the model."""
        return int(self.config.model.width)

    def pads(self, device: torch.device) -> bool:
        """Whether this device computes the padding of a batch, as all but CPUs do, so that it cannot pack."""
        return device.type != "cpu"
