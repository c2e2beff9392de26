"""Pooling of token states into one state per text."""

import torch
from torch import Tensor, nn

from transformer.families.classifier.nn.config import ClassifierParams
from transformer.nn.kernels.linear import Linear


class FirstPooling(nn.Module):
    """The state of the first position."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states[:, 0]


class MeanPooling(nn.Module):
    """The mean over real tokens."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


class MaxPooling(nn.Module):
    """The maximum of each dimension over real tokens."""

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        return states.masked_fill(~real, float("-inf")).amax(dim=1)


class AttentionPooling(nn.Module):
    """The mean weighted by softmax(u^T tanh(W h + b)) (Yang et al. 2016, eqs. 5-7)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.hidden = Linear(d_model, d_model)
        self.score = Linear(d_model, 1, bias=False)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
        scores = self.score(torch.tanh(self.hidden(states))).masked_fill(~real, float("-inf"))
        pooled: Tensor = (scores.softmax(dim=1).to(states.dtype) * states).sum(dim=1)
        return pooled


def make_pooling(params: ClassifierParams) -> nn.Module:
    """Return the module selected by `params.pooling`."""
    if params.pooling == "attention":
        return AttentionPooling(params.d_model)
    if params.pooling == "mean":
        return MeanPooling()
    return MaxPooling() if params.pooling == "max" else FirstPooling()
