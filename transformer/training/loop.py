"""The training loop: epochs of batches, clipped updates, model selection on validation, early stopping."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn

from transformer.core.errors import UserError, is_out_of_memory
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.nn.device import Compute, return_freed_memory
from transformer.nn.trained import put_state, unique_state
from transformer.training.averaging import Averaging, State, make_averaging
from transformer.training.batches import BatchLoss, Trainable
from transformer.training.distributed import LostError, ProcessGroup
from transformer.training.history import CURVE_POINTS, MONITORS, History, in_words
from transformer.training.resume import Resume, Tree
from transformer.training.schedule import Schedule, TrainParams
from transformer.training.step import MeanLoss, NonFiniteError, Step

_MEMORY_SECONDS = 60
"""Minimum number of seconds between two memory trims in an epoch: updates right after one are slower."""


class Fitted(NamedTuple):
    """The result of `fit`."""

    history: History
    state: State
    """The weights to keep, on the CPU."""
    metrics: dict[str, float]
    """Metrics of the kept weights: their epoch's history row; for a mean over epochs, the last row with the mean's
    validation metrics."""
    steps: int
    skipped: int
    """Updates skipped because the loss or a gradient was not finite."""
    pieces: int
    """Number of micro-batches that each batch was split into in the end after running out of memory; 1 for no
    splitting."""


def fit(
    trainable: Trainable,
    params: TrainParams,
    compute: Compute,
    *,
    log_every: int,
    observer: Observer,
    resume: Resume | None = None,
    group: ProcessGroup | None = None,
) -> Fitted:
    """Train until the last epoch or until early stopping, resuming from the checkpoint in `resume`, if any.

    group: the processes that share each update, each of which calls this; None for this one alone. It changes no byte
    of the result.
    Raises UserError when the loss or a gradient is not finite or memory runs out, KeyboardInterrupt when a signal asks
    `resume` to stop.
    """
    resume = resume or Resume(None, 0, observer)
    training = _Training(trainable, params, compute, log_every, observer, resume, group)
    training.load_checkpoint()
    try:
        while not (training.over or training.out_of_patience):
            training.run_epoch()
    except NonFiniteError as error:
        raise UserError(
            f"the loss or a gradient is not finite at step {error.step} ({training.place_of(error.step)}); the last"
            f" good checkpoint is {resume.newest()}: lower train.learning_rate, set train.clip, or set train.non_finite"
            " to skip"
        ) from error
    except LostError as error:
        raise UserError(
            f"a training process was lost at step {training.step} ({error}), perhaps killed because memory ran out:"
            " lower runtime.trainers, and run it again to resume"
        ) from error
    resume.last(training.state)
    if training.out_of_patience:
        observer.say(f"no better {training.monitor.name} for {params.patience} epochs: stopped")
    return training.finish()


class _Training:
    """The state of a training run between two updates."""

    def __init__(
        self,
        trainable: Trainable,
        params: TrainParams,
        compute: Compute,
        log_every: int,
        observer: Observer,
        resume: Resume,
        group: ProcessGroup | None,
    ) -> None:
        self.trainable, self.params, self.compute = trainable, params, compute
        self.log_every, self.observer, self.resume = log_every, observer, resume
        self.update = Step(trainable, params, compute, observer, group)
        self.monitor = MONITORS[params.monitor]
        self.averaging: Averaging = make_averaging(params, self.monitor)
        self._updates_of = [len(self._groups(epoch)) for epoch in range(1, params.epochs + 1)]
        self.schedule = Schedule(params, total=sum(self._updates_of), d_model=trainable.model.d_model)
        self._note_warmup()
        self.history = History()
        self.step = 0
        self.done = 0
        """Updates done in the current epoch."""
        self.mean = MeanLoss(compute.device)
        """Mean loss of the current epoch so far."""
        self._recent = MeanLoss(compute.device)
        """Mean loss since the last point of the loss curve."""
        self._returned = time.monotonic()
        self._updating = 0.0
        """Seconds spent on updates in the current epoch."""
        self._saving = 0.0
        """Seconds of saving that earlier epochs have already reported."""

    def _note_warmup(self) -> None:
        """Log a note if the warmup lasts until the end of training."""
        total = self.schedule.total
        if self.params.warmup >= total:
            self.observer.say(
                f"train.warmup is {self.params.warmup}, and the training has {total} updates: it ends at a learning"
                f" rate of {self.schedule(total):.2g}"
            )

    @property
    def over(self) -> bool:
        """True if all epochs are done."""
        return len(self.history.rows) >= self.params.epochs

    @property
    def out_of_patience(self) -> bool:
        """True if `patience` epochs have passed without improvement."""
        return self.params.patience is not None and self.history.since_best() >= self.params.patience

    def run_epoch(self) -> None:
        """Finish the current epoch, then validate."""
        epoch = len(self.history.rows) + 1
        loss = self._train(epoch)
        trained = time.perf_counter()
        with _weights(self.trainable.model, self.averaging.weights()):
            validation = self._validate()
            validated = _copy(self.trainable.model)
        times = {
            "epoch_update_seconds": self._updating,
            "epoch_validation_seconds": time.perf_counter() - trained,
            "epoch_saving_seconds": self.resume.seconds - self._saving,
        }
        self._updating, self._saving = 0.0, self.resume.seconds
        self.observer.metrics(self.step, {"epoch": epoch, "epoch_train_loss": loss, **validation, **times})
        row = {"epoch": epoch, "step": self.step, "learning_rate": self.schedule(self.step), "train_loss": loss}
        self.history.add(row | validation, self.monitor.better)
        if not math.isfinite(validation["validation_loss"]):
            self.observer.say(f"warning: the validation loss of epoch {epoch} is {validation['validation_loss']}")
        self.averaging.after_epoch(validated, self.history)
        self.done, self.mean = 0, MeanLoss(self.compute.device)
        self.observer.say(self.history.line(self.params.epochs))
        self._return_memory()
        self.resume.checkpoint(self.step, self.state)

    def state(self) -> Tree:
        """Return everything needed for an exact resume."""
        return {
            "step": self.step,
            "done": self.done,
            "mean": self.mean.state(),
            "recent": self._recent.state(),
            "history": self.history.rows,
            "best": self.history.best,
            "curve": self.history.curve,
            "model": unique_state(self.trainable.model),
            "updates": self.update.state(),
            "memory": self.trainable.memory,
            "averaging": self.averaging.state(),
            "observer": self.observer.memory(),
            "seconds": {"updating": self._updating, "saving": self.resume.seconds - self._saving},
        }

    def load_checkpoint(self) -> None:
        """Resume from the newest checkpoint, if there is one."""
        state = self.resume.load()
        if state is None:
            return
        self.step, self.done = state["step"], state["done"]
        self.mean.restore(state["mean"])
        self._recent.restore(state["recent"])
        self.history = History(state["history"], state["best"], state["curve"])
        put_state(self.trainable.model, state["model"])
        self.update.restore(state["updates"])
        self.trainable.memory = _on_device(state["memory"], self.compute.device)
        self.averaging.restore(state["averaging"], self.compute.device)
        self._updating, self._saving = state["seconds"]["updating"], -state["seconds"]["saving"]
        self.observer.resume(self.step, state["observer"])

    def finish(self) -> Fitted:
        """Return the weights to keep, with their metrics. Raises UserError when a metric is not finite."""
        history, state = self.history, self.averaging.result()
        if self.params.averaging not in ("last", "best"):
            _require_finite(history.best_row)
            return self._fitted(state, history.best_row)
        with _weights(self.trainable.model, state):
            validation = self._validate()
        _require_finite(validation)
        count = min(self.params.average_epochs, len(history.rows))
        self.observer.say(f"mean of {count} epochs  {in_words(validation)}")
        return self._fitted(state, history.rows[-1] | validation)

    def _fitted(self, state: State, metrics: dict[str, float]) -> Fitted:
        return Fitted(self.history, state, metrics, self.step, self.update.skipped, self.update.pieces)

    def place_of(self, step: int) -> str:
        """Describe a step of the current epoch for messages."""
        before = sum(self._updates_of[: len(self.history.rows)])
        return f"epoch {len(self.history.rows) + 1}, update {step - before}"

    def _validate(self) -> dict[str, float]:
        self.trainable.model.eval()
        try:
            with torch.inference_mode():
                return self.trainable.validate()
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise UserError("out of memory in validation: lower train.batch_size or model.max_length") from error
            raise

    def _train(self, epoch: int) -> float:
        """Run one update per group of batches; return the epoch's mean negative log-likelihood."""
        self.trainable.model.train()
        left, tokens = self._groups(epoch)[self.done :], 0
        since = begun = time.perf_counter()
        cost = self.trainable.cost
        later = sum(updates * cost(each) for each, updates in enumerate(self._updates_of[epoch:], start=epoch + 1))
        later //= cost(epoch)
        for batches in self.observer.progress(left, total=len(left), what=f"epoch {epoch}", after=later):
            self.step += 1
            losses = self.update(batches, self.step, self.schedule(self.step))
            for loss in losses:
                self.mean.add(loss)
                self._recent.add(loss)
                tokens += loss.tokens
            if losses:
                self.averaging.after_update(self.trainable.model)
            if losses and self.step % self.log_every == 0:
                self._log(losses, tokens / (time.perf_counter() - since))
                since, tokens = time.perf_counter(), 0
            if self.step % max(self.schedule.total // CURVE_POINTS, 1) == 0:
                self._add_point()
            self.done += 1
            self._return_memory(every=_MEMORY_SECONDS)
            self._updating += time.perf_counter() - begun
            self.resume.checkpoint(self.step, self.state)
            begun = time.perf_counter()
        self.update.check()
        if not self.mean.count:
            raise UserError(
                f"every update of epoch {epoch} had a non-finite loss or gradient: lower train.learning_rate"
            )
        return self.mean.value

    def _groups(self, epoch: int) -> list[Sequence[Ids]]:
        """Return the batches of each update of an epoch."""
        batches, each = self.trainable.batches(epoch), self.params.accumulation
        return [batches[start : start + each] for start in range(0, len(batches), each)]

    def _return_memory(self, *, every: float = 0.0) -> None:
        """Trim the heap, unless it was trimmed in the last `every` seconds."""
        if time.monotonic() - self._returned >= every:
            return_freed_memory()
            self._returned = time.monotonic()

    def _add_point(self) -> None:
        if self._recent.count:  # not all updates were skipped
            point = {"step": self.step, "learning_rate": self.schedule(self.step), "train_loss": self._recent.value}
            self.history.curve.append(point)
            self._recent = MeanLoss(self.compute.device)

    def _log(self, losses: Sequence[BatchLoss], speed: float) -> None:
        self.update.check()
        nll = torch.stack([loss.nll for loss in losses]).sum().item() / sum(loss.predicted for loss in losses)
        rate = self.schedule(self.step)
        self.observer.metrics(self.step, {"train_loss": nll, "learning_rate": rate, "tokens_per_second": speed})


def _require_finite(validation: dict[str, float]) -> None:
    for name, value in validation.items():
        if not math.isfinite(value):
            raise UserError(
                f"{name} of the weights to keep is {value}, so no model is written: lower train.learning_rate, set"
                " train.clip, or look for texts whose output is not finite"
            )


@contextmanager
def _weights(model: nn.Module, state: State | None) -> Iterator[None]:
    """Swap other weights into the model while the block runs, if any are given."""
    if state is None:
        yield
        return
    own = _copy(model)
    put_state(model, state)
    yield
    put_state(model, own)


def _copy(model: nn.Module) -> State:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in unique_state(model).items()}


def _on_device(memory: list[torch.Tensor] | None, device: torch.device) -> list[torch.Tensor] | None:
    return None if memory is None else [tensor.to(device) for tensor in memory]
