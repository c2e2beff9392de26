"""Ordered maps over worker processes, by this machine's or Ray's."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from types import ModuleType
from typing import Any, Protocol, TypeVar

from transformer.core.errors import UserError
from transformer.core.validation import Runtime


def ray_engine() -> ModuleType:
    """Import the Ray code by name: it cannot change an output, so no stage depends on it.

    Raises UserError when Ray is not installed.
    """
    try:
        import_module("ray")
    except ImportError as error:
        raise UserError(
            "runtime.engine is `ray`, which is not installed: run `pip install 'transformer[cluster]'`, or set it to"
            " `processes`"
        ) from error
    return import_module("transformer.data.ray_engine")


def end_with_parent() -> None:
    """From now on, exit this process when its parent exits for any reason.

    A parent that was killed closes no pipe whose end another child holds too, so its children would wait forever.
    """
    if parent := parent_process():
        Thread(target=_wait, args=(parent.sentinel,), daemon=True).start()


def _wait(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Items queued per worker: enough to keep it busy, and bounded memory."""


class OrderedMap(Protocol):
    """`map` over one iterable."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Yield the results, in the order of the items."""
        ...


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield consecutive lists of `size` items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


@contextmanager
def worker_processes(
    runtime: Runtime, *, initializer: Callable[..., None], arguments: tuple[Any, ...]
) -> Iterator[OrderedMap]:
    """Yield a `map` over `runtime.workers` processes; each calls `initializer(*arguments)` once, before any item.

    Results keep the order of the items, for any number of workers; 0 runs in this process. The initializer is called
    in this process first, so what it raises is raised here. Raises UserError when workers are lost more often than
    `runtime.retries` allows.
    """
    initializer(*arguments)
    if runtime.workers == 0:
        yield map
        return
    if runtime.engine == "ray":
        opened: AbstractContextManager[OrderedMap] = ray_engine().workers(runtime, initializer, arguments, AHEAD)
        with opened as ordered_map:
            yield ordered_map
        return
    with ExitStack() as stack:
        yield _Pool(runtime, initializer, arguments, stack)


class _Pool:
    """A process pool that is recreated when one of its processes was killed."""

    def __init__(
        self, runtime: Runtime, initializer: Callable[..., None], arguments: tuple[Any, ...], stack: ExitStack
    ) -> None:
        self._workers, self._retries, self._stack = runtime.workers, runtime.retries, stack
        self._initializer, self._arguments = initializer, arguments
        self._pool = self._made()

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Map the function over the items, in order."""
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            waiting.append((item, self._submitted(function, item)))
            if len(waiting) >= self._workers * AHEAD:
                yield self._first(function, waiting)
        while waiting:
            yield self._first(function, waiting)

    def _first(self, function: Callable[[Item], Result], waiting: "deque[tuple[Item, Future[Result]]]") -> Result:
        while True:
            try:
                result = waiting[0][1].result()
            except BrokenProcessPool as error:
                self._again(error)
                again = [(item, self._submitted(function, item)) for item, _ in waiting]
                waiting.clear()
                waiting.extend(again)
            else:
                waiting.popleft()
                return result

    def _submitted(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        try:
            return self._pool.submit(function, item)
        except BrokenProcessPool as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            return failed

    def _again(self, error: BrokenProcessPool) -> None:
        if not self._retries:
            raise UserError(
                "a worker process ended before its work was done, perhaps killed because memory ran out: lower"
                " runtime.workers, or set it to 0"
            ) from error
        self._retries -= 1
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        # spawn: the same on every platform, and safe with threads
        pool = ProcessPoolExecutor(
            self._workers,
            mp_context=get_context("spawn"),
            initializer=_begin,
            initargs=(self._initializer, self._arguments),
        )
        self._stack.callback(pool.shutdown, cancel_futures=True)  # after Ctrl-C, wait for no queued item
        return pool


def _begin(initializer: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the leader decides
    end_with_parent()
    initializer(*arguments)
