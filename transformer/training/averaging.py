"""Choose the weights that a run keeps: those of one epoch, or an average."""

from typing import Protocol

import torch
from torch import Tensor, nn

from transformer.nn.trained import unique_state
from transformer.training.history import History, Monitor
from transformer.training.resume import Tree
from transformer.training.schedule import TrainParams

State = dict[str, Tensor]


class Averaging(Protocol):
    """Follows a training run and returns the weights to keep at its end."""

    def after_update(self, model: nn.Module) -> None:
        """Update the average after each optimizer step."""

    def weights(self) -> State | None:
        """Return the weights to validate instead of the model's own, or None."""

    def after_epoch(self, state: State, history: History) -> None:
        """Record an epoch; state: the validated weights; its metrics are the last row of `history`."""

    def result(self) -> State:
        """Return the weights to keep."""

    def state(self) -> Tree:
        """Return the state that `restore` needs to resume."""

    def restore(self, state: Tree, device: torch.device) -> None:
        """Load the result of `state` for a model on `device`."""


class BestEpoch:
    """Keep the weights of the best epoch, without averaging."""

    def __init__(self) -> None:
        self._best = State()

    def after_update(self, model: nn.Module) -> None:
        """Do nothing."""

    def weights(self) -> State | None:
        """Return None: the model's own weights are validated."""
        return None

    def after_epoch(self, state: State, history: History) -> None:
        """Keep the weights if they are the best so far."""
        if history.since_best() == 0:
            self._best = state

    def result(self) -> State:
        """Return the best epoch's weights."""
        return self._best

    def state(self) -> Tree:
        """Return the best epoch's weights for a checkpoint."""
        return {"best": self._best}

    def restore(self, state: Tree, device: torch.device) -> None:
        """Load the best epoch's weights; they stay on the CPU."""
        self._best = state["best"]


class MovingAverage(BestEpoch):
    """Keep the best epoch's exponential moving average over all updates (Polyak and Juditsky 1992).

    The weights of an update count decay^age, normalised by the sum, so that the first ones are not overweighted.
    """

    def __init__(self, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.updates = 0
        self.average = State()

    def after_update(self, model: nn.Module) -> None:
        """Move the average towards the model's weights."""
        state = unique_state(model)
        if not self.average:
            self.average = {name: tensor.detach().clone() for name, tensor in state.items()}
        self.updates += 1
        share = (1 - self.decay) / (1 - self.decay**self.updates)  # the sum of decay^age is a geometric series
        torch._foreach_lerp_(list(self.average.values()), [t.detach() for t in state.values()], share)

    def weights(self) -> State | None:
        """Return the moving average."""
        return self.average

    def state(self) -> Tree:
        """Return the best epoch's weights, the average and the number of updates in it."""
        return {**super().state(), "average": self.average, "updates": self.updates}

    def restore(self, state: Tree, device: torch.device) -> None:
        """Load the state, with the average on the model's device."""
        super().restore(state, device)
        self.average = {name: tensor.to(device) for name, tensor in state["average"].items()}
        self.updates = state["updates"]


class MeanOfEpochs:
    """Average the weights of several epochs: the last ones (Vaswani et al. 2017, section 6.1) or the best ones."""

    def __init__(self, count: int, monitor: Monitor, *, best: bool) -> None:
        self.count, self.best, self.monitor = count, best, monitor
        self._kept: list[tuple[tuple[float, ...], State]] = []

    def after_update(self, model: nn.Module) -> None:
        """Do nothing."""

    def weights(self) -> State | None:
        """Return None: the model's own weights are validated."""
        return None

    def after_epoch(self, state: State, history: History) -> None:
        """Keep the weights; beyond `count`, drop the oldest or the worst."""
        self._kept.append((self.monitor.rank(history.rows[-1]), state))
        if len(self._kept) > self.count:
            worst = max(range(len(self._kept)), key=lambda index: self._kept[index][0]) if self.best else 0
            del self._kept[worst]

    def result(self) -> State:
        """Return the mean, summed in float64 in epoch order."""
        states = [state for _, state in self._kept]
        return {name: _mean([state[name] for state in states]) for name in states[0]}

    def state(self) -> Tree:
        """Return the epochs' weights and ranks."""
        return {"kept": self._kept}

    def restore(self, state: Tree, device: torch.device) -> None:
        """Load the epochs' weights; they stay on the CPU."""
        self._kept = [(tuple(rank), weights) for rank, weights in state["kept"]]


def _mean(tensors: list[Tensor]) -> Tensor:
    if not tensors[0].is_floating_point():
        return tensors[-1]
    return torch.stack([tensor.double() for tensor in tensors]).mean(dim=0).to(tensors[0].dtype)


def make_averaging(params: TrainParams, monitor: Monitor) -> Averaging:
    """Return the averaging named by `params.averaging`; monitor: ranks the epochs."""
    if params.averaging == "none":
        return BestEpoch()
    if params.averaging == "ema":
        return MovingAverage(params.ema_decay)
    return MeanOfEpochs(params.average_epochs, monitor, best=params.averaging == "best")
