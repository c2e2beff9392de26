"""Steady-state training steps of our loop and the peers', on the same rows of the encoded store."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.harness import Clock, Contender, Work
from transformer.checkpoint.device import Compute
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.loop import fit
from transformer.training.team import Team
from transformer.training.trainable import BatchLoss, Trainable

T = TypeVar("T")


class Steps(NamedTuple):
    """The result of some training steps."""

    seconds: float
    losses: list[float]
    """The mean negative log-likelihood of each batch in nats."""


class _Stopwatch(Observer):
    """Times an epoch's updates, except for the first ones."""

    def __init__(self, device: torch.device, untimed: int) -> None:
        self._clock, self._device, self._untimed = Clock(device), device, untimed
        self.seconds = 0.0

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterator[T]:
        """The loop takes an item per update, whose batch may be cut into parts."""
        for number, item in enumerate(items):
            if number == self._untimed:
                self._clock = Clock(self._device)
            yield item
        self.seconds = self._clock.elapsed()


class OurLoop:
    """Our training loop on given batches: one epoch of them, timed from the first update to the last, not averaged."""

    def __init__(self, trainable: Trainable, params: TrainParams, compute: Compute) -> None:
        self.trainable, self.compute = trainable, compute
        plain = {"epochs": 1, "patience": None, "accumulation": 1, "averaging": "none"}
        self.params = params.model_copy(update=plain)
        self.model, self.lr_scales = trainable.model, trainable.lr_scales
        self._batches: Sequence[Ids] = ()
        self._losses: list[Tensor] = []

    def steps(self, batches: Sequence[Ids], *, untimed: int = 1, team: Team | None = None) -> Steps:
        """Train on these batches with a new optimizer; the first `untimed` ones are not timed. team: as in `fit`."""
        self._batches, self._losses, watch = batches, [], _Stopwatch(self.compute.device, untimed)
        fit(self, self.params, self.compute, log_every=len(batches) + 1, observer=watch, team=team)
        return Steps(watch.seconds, [loss.item() for loss in self._losses])

    def batches(self, epoch: int) -> Sequence[Ids]:
        """The given batches."""
        return self._batches

    def cost(self, epoch: int) -> int:
        """The same for all: nothing asks for the remaining time."""
        return 1

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """The task's own."""
        return self.trainable.pieces(rows)

    def loss(self, rows: Ids) -> BatchLoss:
        """The task's own."""
        loss = self.trainable.loss(rows)
        self._losses.append(loss.nll / loss.predicted)
        return loss

    def validate(self) -> dict[str, float]:
        """Nothing."""
        return {"validation_loss": 0.0, "validation_accuracy": 0.0}


class PeerLoop:
    """The training loop of the public notebooks: Adam, gradient clipping, fp32."""

    def __init__(
        self, model: nn.Module, loss: Callable[[Ids], Tensor], params: TrainParams, device: torch.device
    ) -> None:
        """loss: the mean loss per prediction in a batch of these rows."""
        self.model, self._loss, self._clip = model.to(device), loss, params.clip or float("inf")
        self._optimizer = torch.optim.Adam(model.parameters(), lr=params.learning_rate)
        self._device = device

    def steps(self, batches: Sequence[Ids], *, untimed: int = 1) -> Steps:
        """As `OurLoop.steps`, but with one optimizer for all calls."""
        clock, losses = Clock(self._device), []
        self.model.train()
        for number, rows in enumerate(batches):
            if number == untimed:
                clock = Clock(self._device)
            self._optimizer.zero_grad()
            loss = self._loss(rows)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
            self._optimizer.step()
            losses.append(loss.item())  # the notebooks accumulate it after each step
        return Steps(clock.elapsed(), losses)


class Sample:
    """The rows of a round, drawn from the train split: the same for all contenders, each with its own batching."""

    def __init__(self, lengths: NDArray[np.int64], *, steps: int, batch_size: int) -> None:
        """lengths: (N,), the token counts that the notebooks sort by."""
        self._lengths, self._size, self._count = lengths, batch_size, steps * batch_size

    def rows(self, number: int) -> Ids:
        """The rows of round `number`, in a random order."""
        return np.random.default_rng([1, number]).permutation(len(self._lengths))[: self._count]

    def random(self, number: int) -> list[Ids]:
        """Batches in that order."""
        return self._cut(self.rows(number))

    def bucketed(self, number: int) -> list[Ids]:
        """Batches of similar length, in a random order."""
        rows = self.rows(number)
        batches = self._cut(rows[np.argsort(self._lengths[rows], kind="stable")])
        return [batches[i] for i in np.random.default_rng([2, number]).permutation(len(batches))]

    def _cut(self, rows: Ids) -> list[Ids]:
        return [rows[start : start + self._size] for start in range(0, len(rows), self._size)]


def contender(loop: OurLoop | PeerLoop, batches: Callable[[int], list[Ids]], amount: Callable[[Ids], int]) -> Contender:
    """A contender whose round trains on all batches after one warm-up batch; amount: the work in some rows."""

    def run(number: int) -> Work:
        timed = batches(number)
        done = loop.steps([batches(number + 1000)[0], *timed])
        return Work(sum(amount(rows) for rows in timed), done.seconds)

    return run
