"""The optimizers."""

import torch
from torch import nn

from transformer.training.config import TrainParams


def make_optimizer(model: nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """Adam, or AdamW that decays matrices only; fused, one kernel for all parameters."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if params.optimizer == "adam":
        return torch.optim.Adam(
            trained, lr=params.learning_rate, betas=_pair(params.betas), eps=params.epsilon, fused=True
        )
    groups = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": params.weight_decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=params.learning_rate, betas=_pair(params.betas), eps=params.epsilon, fused=True)


def _pair(betas: list[float]) -> tuple[float, float]:
    first, second = betas
    return first, second
