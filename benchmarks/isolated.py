"""Contenders in separate processes, where PyTorch has its default settings.

Our training configures PyTorch and the C library's memory for the whole process (`checkpoint/device.py`), which would
change a peer's speed too: keeping freed memory alone doubles the straightforward model's speed.
"""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from transformer.core.errors import UserError

Result = TypeVar("Result")
Argument = TypeVar("Argument")
_made: dict[str, Callable[[Any], Any]] = {}


def isolated(
    make: Callable[..., Callable[[Argument], Result]], *arguments: Any, threads: int
) -> Callable[[Argument], Result]:
    """The contender that `make(*arguments)` creates in a new process, which lives as long as this one.

    make: a module-level function; threads: of PyTorch. Raises UserError if the process dies.
    """
    pool = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_start, initargs=(threads, make, arguments)
    )

    def run(argument: Argument) -> Result:
        result: Result = _result(pool, _work, argument)
        return result

    return run


def alone(function: Callable[[Argument], Result], argument: Argument, *, threads: int) -> Result:
    """Call `function(argument)` in a new process. Raises UserError if it dies."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start, initargs=(threads,)) as pool:
        return _result(pool, function, argument)


def _result(pool: ProcessPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
    try:
        return pool.submit(function, *arguments).result()
    except BrokenProcessPool as error:
        raise UserError("a contender's process died: see its output above, or free some memory") from error


def _start(
    threads: int, make: Callable[..., Callable[[Any], Any]] | None = None, arguments: tuple[Any, ...] = ()
) -> None:
    os.environ.pop("ONEDNN_PRIMITIVE_CACHE_CAPACITY", None)  # inherited if our process has set it
    torch.set_num_threads(threads)
    if make is not None:
        _made["contender"] = make(*arguments)


def _work(argument: Any) -> Any:
    return _made["contender"](argument)
