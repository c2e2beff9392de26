"""Training steps of our loop and of the notebooks', on the same rows of the encoded store."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.harness import Contender, Work, now
from transformer.core.observer import Observer
from transformer.data.store import Ids
from transformer.nn.device import Compute
from transformer.training.batches import BatchLoss, Trainable
from transformer.training.loop import fit
from transformer.training.schedule import TrainParams

T = TypeVar("T")


class Steps(NamedTuple):
    """The time of some training steps, and each batch's mean negative log-likelihood in nats."""

    seconds: float
    losses: list[float]


class _Stopwatch(Observer):
    """Times an epoch's updates, except for the first ones."""

    def __init__(self, device: torch.device, untimed: int) -> None:
        self._device, self._untimed, self.seconds = device, untimed, 0.0

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterator[T]:
        """The loop takes an item per update, whose batch may be cut into parts."""
        for number, item in enumerate(items):
            if number == self._untimed:
                started = now(self._device)
            yield item
        self.seconds = now(self._device) - started


class OurLoop:
    """Our training loop on given batches: one epoch of them, timed from the first update to the last, not averaged."""

    def __init__(self, trainable: Trainable, params: TrainParams, compute: Compute) -> None:
        self.trainable, self.compute = trainable, compute
        plain = {"epochs": 1, "patience": None, "accumulation": 1, "averaging": "none"}
        self.params = params.model_copy(update=plain)
        self.model, self.lr_scales, self.pieces = trainable.model, trainable.lr_scales, trainable.pieces
        self.memory = None
        self._batches: Sequence[Ids] = ()
        self._losses: list[Tensor] = []

    def steps(self, batches: Sequence[Ids], *, untimed: int = 1) -> Steps:
        """Train on these batches with a new optimizer; the first `untimed` ones are not timed."""
        self._batches, self._losses, watch = batches, [], _Stopwatch(self.compute.device, untimed)
        fit(self, self.params, self.compute, log_every=len(batches) + 1, observer=watch)
        return Steps(watch.seconds, [loss.item() for loss in self._losses])

    def batches(self, epoch: int) -> Sequence[Ids]:
        return self._batches

    def cost(self, epoch: int) -> int:
        return 1

    def loss(self, rows: Ids) -> BatchLoss:
        loss = self.trainable.loss(rows)
        self._losses.append(loss.nll / loss.predicted)
        return loss

    def validate(self) -> dict[str, float]:
        return {"validation_loss": 0.0, "validation_accuracy": 0.0}


class PeerLoop:
    """The training loop of the public notebooks: Adam, gradient clipping, fp32."""

    def __init__(
        self, model: nn.Module, loss: Callable[[Ids], Tensor], params: TrainParams, device: torch.device
    ) -> None:
        self.model, self._loss, self._clip = model.to(device), loss, params.clip or float("inf")
        self._optimizer = torch.optim.Adam(model.parameters(), lr=params.learning_rate)
        self._device = device

    def steps(self, batches: Sequence[Ids], *, untimed: int = 1) -> Steps:
        """As `OurLoop.steps`, but with one optimizer for all calls."""
        losses = []
        self.model.train()
        for number, rows in enumerate(batches):
            if number == untimed:
                started = now(self._device)
            self._optimizer.zero_grad()
            loss = self._loss(rows)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
            self._optimizer.step()
            losses.append(loss.item())  # the notebooks accumulate it after each step
        return Steps(now(self._device) - started, losses)


class Sample:
    """The rows of a round, drawn from the train split: the same for all contenders, each with its own batching."""

    def __init__(self, lengths: NDArray[np.int64], *, steps: int, batch_size: int) -> None:
        self._lengths, self._size, self._count = lengths, batch_size, steps * batch_size

    def random(self, number: int) -> list[Ids]:
        return self._cut(self._rows(number))

    def bucketed(self, number: int) -> list[Ids]:
        """Batches of similar length, in a random order."""
        rows = self._rows(number)
        batches = self._cut(rows[np.argsort(self._lengths[rows], kind="stable")])
        return [batches[i] for i in np.random.default_rng([2, number]).permutation(len(batches))]

    def _rows(self, number: int) -> Ids:
        return np.random.default_rng([1, number]).permutation(len(self._lengths))[: self._count]

    def _cut(self, rows: Ids) -> list[Ids]:
        return [rows[start : start + self._size] for start in range(0, len(rows), self._size)]


def contender(loop: OurLoop | PeerLoop, batches: Callable[[int], list[Ids]], amount: Callable[[Ids], int]) -> Contender:
    """A contender whose round trains on all batches after one warm-up batch; amount: the work in some rows."""

    def run(number: int) -> Work:
        timed = batches(number)
        done = loop.steps([batches(number + 1000)[0], *timed])
        return Work(sum(amount(rows) for rows in timed), done.seconds)

    return run
