"""A line fitted to points: the smallest model that the loop trains."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.builders import TRAIN
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.nn.device import Compute
from transformer.nn.layers import Model
from transformer.training.batches import BatchLoss
from transformer.training.loop import Fitted, fit
from transformer.training.schedule import TrainParams

CPU = Compute(torch.device("cpu"), "fp32")


def params(**changes: Any) -> TrainParams:
    return TrainParams(**(TRAIN | changes))


class Slope(nn.Linear, Model):
    """y = ax + b."""

    d_model = 1


class Line:
    """Fits y = 2x; its validation metrics are given."""

    lr_scales: Mapping[str, float] = MappingProxyType({})
    memory = None

    def __init__(self, validation: Sequence[float] = ()) -> None:
        torch.manual_seed(0)
        self.model = Slope(1, 1)
        self.figures = iter(validation)
        self.seen: list[list[int]] = []

    def batches(self, epoch: int) -> Sequence[Ids]:
        return np.split(np.arange(8), 2)

    def cost(self, epoch: int) -> int:
        return 1

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        return [rows]

    def loss(self, rows: Ids) -> BatchLoss:
        self.seen.append(rows.tolist())
        x = torch.from_numpy(rows).float()[:, None] / 8
        total = (self.model(x) - 2 * x).square().sum()
        return BatchLoss(total, total.detach(), len(rows), tokens=len(rows))

    def validate(self) -> dict[str, float]:
        assert not self.model.training
        figure = next(self.figures, 0.0)
        return {"validation_loss": figure, "validation_accuracy": -figure}


def run(line: Line, **changes: Any) -> Fitted:
    return fit(line, params(**changes), CPU, log_every=1, observer=Observer())
