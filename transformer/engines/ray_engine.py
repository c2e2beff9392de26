"""Workers and training processes as Ray actors, on one machine or a cluster.

Only Ray Core: the order of items and the sums of gradients are this project's own, so Ray cannot change a byte.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from transformer.core.code import own_code
from transformer.core.errors import UserError
from transformer.core.schema import Runtime
from transformer.engines.ray_cluster import joined, one_line
from transformer.text.parallel import AHEAD, OrderedMap

Item = TypeVar("Item")
Result = TypeVar("Result")
_WAIT = 60.0
"""Seconds to wait for a replacement of a lost machine."""


class _Actor:
    """A worker; its initializer's state persists between items."""

    def __init__(self, root: str, code: str, initializer: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._trouble = ""
        with suppress(OSError):
            os.chdir(root)
        if Path.cwd() != Path(root):
            self._trouble = f"the folder {root} is missing on {socket.gethostname()}: share it with all machines"
        elif own_code() != code:
            self._trouble = f"the code on {socket.gethostname()} is not that of this machine: update it"
        else:
            initializer(*arguments)

    def run(self, function: Callable[[Item], Result], item: Item) -> Result:
        """Process an item."""
        if self._trouble:
            raise UserError(self._trouble)
        return function(item)


@contextmanager
def workers(runtime: Runtime, initializer: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[OrderedMap]:
    """Run worker processes as actors with one core each.

    Raises UserError when the cluster has too few cores: Ray would wait for them forever.
    """
    with joined(runtime, runtime.workers):
        actor = ray.remote(num_cpus=1)(_Actor)
        given = str(Path.cwd()), own_code(), initializer, arguments
        actors = _Actors(runtime, lambda: actor.remote(*given))
        try:
            yield actors
        finally:
            actors.forget()


class _Held(NamedTuple):
    """An item assigned to an actor, and the reference of its result."""

    actor: int
    item: Any
    reference: Any


class _Actors:
    """A `map` over actors, which take items in turn.

    A lost actor is recreated here: Ray's own retries are used up immediately, while it still considers the lost
    machine available.
    """

    def __init__(self, runtime: Runtime, make: Callable[[], Any]) -> None:
        self._count, self._retries, self._make = runtime.workers, runtime.retries, make
        self._require_cores(wait=0)
        self._actors = [make() for _ in range(self._count)]

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Map the function over the items, in order."""
        waiting: deque[_Held] = deque()
        for number, item in enumerate(items):
            waiting.append(self._given(function, number % self._count, item))
            if len(waiting) >= self._count * AHEAD:
                yield self._first(function, waiting)
        while waiting:
            yield self._first(function, waiting)

    def forget(self) -> None:
        """Drop the actors, before the cluster ends.

        Ray numbers the actors of each private cluster alike: a handle deleted after the next cluster has started
        would end one of that cluster's actors.
        """
        self._actors.clear()

    def _given(self, function: Callable[[Item], Result], actor: int, item: Item) -> _Held:
        return _Held(actor, item, self._actors[actor].run.remote(function, item))

    def _first(self, function: Callable[[Item], Result], waiting: deque[_Held]) -> Any:
        while True:
            lost = waiting[0].actor
            try:
                result = _found(waiting[0].reference)
            except RayTaskError:
                raise
            except RayError as error:
                self._replace(lost, error)
                again = [self._given(function, *held[:2]) if held.actor == lost else held for held in waiting]
                waiting.clear()
                waiting.extend(again)
            else:
                waiting.popleft()
                return result

    def _replace(self, lost: int, error: RayError) -> None:
        if not self._retries:
            raise UserError(
                f"a worker of Ray was lost more often than runtime.retries allows ({one_line(error)}), perhaps because"
                " memory ran out: lower runtime.workers, or raise runtime.retries"
            ) from error
        self._retries -= 1
        ray.kill(self._actors[lost])  # its machine may only be temporarily unreachable
        self._require_cores(wait=_WAIT)
        self._actors[lost] = self._make()

    def _require_cores(self, *, wait: float) -> None:
        end = time.monotonic() + wait
        while (cores := int(ray.cluster_resources().get("CPU", 0))) < self._count:
            if time.monotonic() > end:
                raise UserError(
                    f"the Ray cluster has {cores} cores, runtime.workers is {self._count}: lower it, or add machines"
                )
            time.sleep(1)


def _found(reference: Any) -> Any:
    """Return an actor's result. Raises the UserError that it raised."""
    try:
        return ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(str(error.cause)) from error
        raise
