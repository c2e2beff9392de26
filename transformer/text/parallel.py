"""Process chunks in several processes, in order and in bounded memory."""

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

_AHEAD = 2  # chunks queued per worker: enough to keep it busy, and bounded memory


class OrderedMap(Protocol):
    """`map` over one iterable."""

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
    """A `map` that runs in `workers` processes; each calls `initializer(*arguments)` once, before its first item.

    Results keep the order of the items, for any number of workers; 0 runs in this process. The initializer is called
    in this process first, so what it raises is raised here. Raises UserError when a worker is killed.
    """
    initializer(*arguments)
    if workers == 0:
        yield map
        return
    context = get_context("spawn")  # the same on every platform, and safe with threads
    try:
        with ProcessPoolExecutor(workers, mp_context=context, initializer=initializer, initargs=arguments) as pool:
            yield partial(_ordered, pool, workers)
    except BrokenProcessPool as error:
        raise UserError(
            "a worker process ended before its work was done, perhaps killed because memory ran out: lower"
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
