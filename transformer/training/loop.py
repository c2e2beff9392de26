"""The training loop: epochs of batches, clipped Adam updates, the best epoch by validation, early stopping."""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from transformer.errors import UserError
from transformer.observer import Observer
from transformer.text.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.device import Compute
from transformer.training.history import History
from transformer.training.schedule import learning_rate_at

State = dict[str, Tensor]


class BatchLoss(NamedTuple):
    """The loss of a batch."""

    total: Tensor
    """Scalar: summed over what is predicted (tokens, or texts)."""
    predicted: int
    """How many."""
    tokens: int
    """Real tokens that were read, for the speed."""


class Trainable(Protocol):
    """What the loop needs of a task."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    def batches(self, epoch: int) -> Sequence[Ids]:
        """The epoch's batches of row numbers, in order."""

    def loss(self, rows: Ids) -> BatchLoss:
        """The loss on these rows of the training split."""

    def validate(self) -> dict[str, float]:
        """Figures on the validation split: `validation_loss`, `validation_accuracy`, and further `validation_...`."""


class Monitor(NamedTuple):
    """The validation figure that decides which epoch is the best."""

    name: str
    higher_is_better: bool = False

    def better(self, new: dict[str, float], old: dict[str, float]) -> bool:
        """Whether `new` is strictly better than `old`."""
        return new[self.name] > old[self.name] if self.higher_is_better else new[self.name] < old[self.name]


MONITORS = {
    "loss": Monitor("validation_loss"),
    "accuracy": Monitor("validation_accuracy", higher_is_better=True),
}


class Fitted(NamedTuple):
    """What `fit` returns."""

    history: History
    state: State
    """The best epoch's weights, on the CPU."""
    steps: int


def fit(trainable: Trainable, params: TrainParams, compute: Compute, *, log_every: int, observer: Observer) -> Fitted:
    """Train until the epochs or the patience are used up. Raises UserError when the loss is no longer finite."""
    monitor = MONITORS[params.monitor]
    optimizer = torch.optim.Adam(trainable.model.parameters(), lr=params.learning_rate, fused=True)
    history, best, step = History(), State(), 0
    for epoch in range(1, params.epochs + 1):
        updates = _Epoch(trainable, params, compute, optimizer, log_every, observer)
        step = updates.run(epoch, step)
        trainable.model.eval()
        with torch.inference_mode():
            validation = trainable.validate()
        row = {"epoch": epoch, "step": step, "learning_rate": learning_rate_at(step, params)}
        history.rows.append(row | {"train_loss": updates.mean_loss} | validation)
        observer.metrics(step, {"epoch": epoch, "epoch_train_loss": updates.mean_loss, **validation})
        if history.best < 0 or monitor.better(history.rows[-1], history.best_row):
            history.best, best = len(history.rows) - 1, _copy(trainable.model)
        observer.say(_epoch_line(history, params.epochs))
        if params.patience is not None and history.since_best() >= params.patience:
            observer.say(f"no better {monitor.name} for {params.patience} epochs: stopped")
            break
    return Fitted(history, best, step)


class _Epoch:
    """One pass over the training split."""

    def __init__(
        self,
        trainable: Trainable,
        params: TrainParams,
        compute: Compute,
        optimizer: torch.optim.Optimizer,
        log_every: int,
        observer: Observer,
    ) -> None:
        self.trainable, self.params, self.compute = trainable, params, compute
        self.optimizer, self.log_every, self.observer = optimizer, log_every, observer
        self.total = torch.zeros((), dtype=torch.float64 if compute.device.type != "mps" else torch.float32)
        self.total = self.total.to(compute.device)
        self.count = 0

    @property
    def mean_loss(self) -> float:
        return self.total.item() / max(self.count, 1)

    def run(self, epoch: int, step: int) -> int:
        """Update once a batch; returns the number of updates so far."""
        self.trainable.model.train()
        batches = self.trainable.batches(epoch)
        started, tokens = time.perf_counter(), 0
        for rows in self.observer.progress(batches, total=len(batches), what=f"epoch {epoch}"):
            step += 1
            batch_loss = self._update(rows, step)
            tokens += batch_loss.tokens
            if step % self.log_every == 0:
                loss = batch_loss.total.item() / batch_loss.predicted
                _check_finite(loss, f"step {step}")
                speed = tokens / (time.perf_counter() - started)
                rate = self.optimizer.param_groups[0]["lr"]
                self.observer.metrics(step, {"train_loss": loss, "learning_rate": rate, "tokens_per_second": speed})
        _check_finite(self.mean_loss, f"epoch {epoch}")
        return step

    def _update(self, rows: Ids, step: int) -> BatchLoss:
        self.optimizer.param_groups[0]["lr"] = learning_rate_at(step, self.params)
        with self.compute.autocast():
            batch_loss = self.trainable.loss(rows)
        (batch_loss.total / batch_loss.predicted).backward()  # type: ignore[no-untyped-call]
        if self.params.clip is not None:
            nn.utils.clip_grad_norm_(self.trainable.model.parameters(), self.params.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.total += batch_loss.total.detach()
        self.count += batch_loss.predicted
        return batch_loss


def _check_finite(loss: float, where: str) -> None:
    if not math.isfinite(loss):
        raise UserError(f"the training loss is {loss} at {where}: lower train.learning_rate or set train.clip")


def _copy(model: nn.Module) -> State:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}


def _epoch_line(history: History, epochs: int) -> str:
    row = history.rows[-1]
    figures = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name.endswith(("loss", "y")))
    best = "  (best)" if history.since_best() == 0 else ""
    return f"epoch {row['epoch']:.0f}/{epochs}  {figures}{best}"
