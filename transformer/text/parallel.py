"""Work on chunks in several processes, in order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from transformer.core.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # chunks a worker that may wait: enough to keep it busy, and no more memory than that


class OrderedMap(Protocol):
    """`map` of one iterable."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """The results, in the order of the items."""
        ...


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Consecutive lists of `size` items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


@contextmanager
def worker_processes(
    workers: int, *, initializer: Callable[..., None], arguments: tuple[Any, ...]
) -> Iterator[OrderedMap]:
    """A `map` whose work is done by `workers` processes; each calls `initializer(*arguments)` once, before its first
    item.

    Results come in the order of the items, whatever the number of workers; 0 works in this process. What the
    initializer raises is raised here: it is called in this process first. Raises UserError when a worker is killed.
    """
    initializer(*arguments)
    if workers == 0:
        yield map
        return
    context = get_context("spawn")  # the same on every platform, and safe beside threads
    try:
        with ProcessPoolExecutor(workers, mp_context=context, initializer=initializer, initargs=arguments) as pool:
            yield partial(_ordered, pool, workers)
    except BrokenProcessPool as error:
        raise UserError(
            "one of the worker processes ended before its work was done, as when it is killed for want of memory: lower"
            " runtime.workers, or set it to 0"
        ) from error


def _ordered(
    pool: ProcessPoolExecutor, workers: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= workers * _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
