"""The processes of a training run: this one leads, and the others follow its orders.

Only the leader validates, saves checkpoints, stops and writes; a follower computes its parts of each update, and takes
the same optimizer step. Whoever is lost is started again, with the leader's weights, before the update that it missed.
"""

import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from transformer.checkpoint.device import Compute
from transformer.checkpoint.trained import put_state
from transformer.core.code import own_code
from transformer.core.engine import end_with_parent
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids
from transformer.training.config import TrainParams
from transformer.training.group import Alone, Connected, Group, LostError, Order, only_here
from transformer.training.states import Tree
from transformer.training.trainable import Opened
from transformer.training.update import NonFiniteError, Updates

Result = TypeVar("Result")
_SECONDS = 10
"""For a follower to end by itself."""


Opening = Callable[[], Opened]


class Team(Group, Protocol):
    """The group as its leader sees it."""

    def lead(self, order: Order, update: Callable[[], Result], state: Callable[[], Tree]) -> Result:
        """Order `update` of all processes, and run it here. state: of model and updates, for new followers.

        Raises UserError when processes are lost more often than `runtime.retries` allows.
        """


class Single(Alone):
    """A team of one process."""

    def lead(self, order: Order, update: Callable[[], Result], state: Callable[[], Tree]) -> Result:
        """As `Team.lead`."""
        return update()


Starter = Callable[[int, Opening, ExitStack], str]
"""Starts processes 1 to size - 1, which `follow` once they have opened the run. Returns where all of them meet.

Raises UserError with their message if they cannot open it, LostError if they end. The stack's callbacks end them.
"""


class Processes:
    """A team of several processes; a context manager, which starts them with the first order."""

    rank = 0

    def __init__(
        self,
        size: int,
        opening: Opening,
        compute: Compute,
        *,
        retries: int,
        observer: Observer,
        start: Starter | None = None,
    ) -> None:
        """size: the number of processes; opening: opens the same run in another process, which it is pickled for.

        start: None for processes of this machine.
        """
        self.size, self._opening, self._compute = size, opening, compute
        self._retries, self._observer, self._start = retries, observer, start or start_here
        self._group: Connected | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disconnect()

    def any(self, flag: bool) -> bool:
        """As `Group.any`."""
        assert self._group is not None
        return self._group.any(flag)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """As `Group.gather`."""
        assert self._group is not None
        return self._group.gather(tensor)

    def lead(self, order: Order, update: Callable[[], Result], state: Callable[[], Tree]) -> Result:
        """As `Team.lead`."""
        while True:
            try:
                if self._group is None:
                    self._group = self._connected()
                    self._group.share(state())
                self._group.lead(order)
                return update()
            except LostError as error:
                self._disconnect()
                if not self._retries:
                    raise UserError(
                        f"a training process was lost at step {order.step} ({error}), perhaps killed because memory ran"
                        " out: lower runtime.trainers or raise runtime.retries, and run it again to resume"
                    ) from error
                self._retries -= 1
                self._observer.say(f"warning: a training process was lost at step {order.step}: starting another")

    def _connected(self) -> Connected:
        meeting = self._start(self.size, self._opening, self._stack)
        group = Connected(meeting, 0, self.size, self._compute.device)
        self._stack.callback(group.close)  # before the processes end: it tells them to
        return group

    def _disconnect(self) -> None:
        self._group = None
        self._stack.close()


def start_here(size: int, opening: Opening, stack: ExitStack) -> str:
    """A `Starter` of processes on this machine, which listen to no other."""
    only_here()
    meeting = f"{stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))}/meeting"
    context = get_context("forkserver")
    # So that torch is imported once for all, with what its optimizers import when they are made.
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    started = []
    for rank in range(1, size):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(opening, rank, size, meeting, own_code(), there), daemon=True)
        process.start()
        stack.callback(_end, process)
        there.close()
        started.append(here)
    for connection in started:
        _require_ready(connection)
    return meeting


def _require_ready(connection: Connection) -> None:
    """Wait until a follower has opened the run. Raises UserError with its message, LostError if it ended."""
    with connection:
        try:
            message = connection.recv()
        except EOFError as error:
            raise LostError("it ended before its first update") from error
    if message:
        raise UserError(message)


def _end(process: Any) -> None:
    try:
        process.join(_SECONDS)
    finally:  # also after one more Ctrl-C: it ignores the SIGTERM that Python would send
        if process.is_alive():
            process.kill()
            process.join()


def _run(opening: Opening, rank: int, size: int, meeting: str, code: str, ready: Connection) -> None:
    """What another process of this machine runs."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they may reach all at once; the leader decides
    end_with_parent()
    try:
        if own_code() != code:  # also where the edit is reverted before the stage's end, which compares again
            raise UserError("the code changed while the stage ran: run it again to resume from the last checkpoint")
        opened = open_as(rank, opening)
    except UserError as error:
        ready.send(str(error))
        return
    ready.send("")
    follow(opened, rank, size, meeting)


def open_as(rank: int, opening: Opening) -> Opened:
    """Open the run in the process with this number; each takes a GPU of its own. Raises UserError."""
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
    return opening()


def follow(opened: Opened, rank: int, size: int, meeting: str) -> None:
    """Update as ordered, until the leader leaves or ends."""
    with suppress(LostError, NonFiniteError, UserError):  # the leader has the same trouble, and says so
        _obey(opened, Connected(meeting, rank, size, opened.compute.device))


def _obey(opened: Opened, group: Connected) -> None:
    updates = Updates(opened.trainable, opened.params, opened.compute, Observer(), group)
    state = group.share()
    put_state(opened.trainable.model, state["model"])
    updates.restore(state["updates"])
    opened.trainable.model.train()
    epoch, groups = 0, list[Sequence[Ids]]()
    while True:
        order = group.follow()
        if order.epoch != epoch:
            epoch, groups = order.epoch, accumulated(opened.trainable.batches(order.epoch), opened.params)
        updates(groups[order.number], order.step, order.rate)


def accumulated(batches: Sequence[Ids], params: TrainParams) -> list[Sequence[Ids]]:
    """The batches of each update."""
    return [batches[start : start + params.accumulation] for start in range(0, len(batches), params.accumulation)]
