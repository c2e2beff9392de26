"""Contenders in processes of their own, where PyTorch is as its users find it.

Our training sets PyTorch and the C library's memory up for the whole process (`checkpoint/device.py`); beside it a peer
would be faster or slower than it is: freed memory that is kept alone doubles the straightforward model's speed.
"""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from benchmarks.harness import Contender, Work
from transformer.core.errors import UserError

Result = TypeVar("Result")
Argument = TypeVar("Argument")
_made: dict[str, Contender] = {}


def isolated(make: Callable[..., Contender], *arguments: Any, threads: int) -> Contender:
    """The contender that `make(*arguments)` makes in a new process, which lives as long as this one.

    make: a function of a module; threads: of PyTorch. Raises UserError where the process dies.
    """
    pool = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_start, initargs=(threads, make, arguments)
    )

    def run(number: int) -> Work:
        return _result(pool, _work, number)

    return run


def alone(function: Callable[[Argument], Result], argument: Argument, *, threads: int) -> Result:
    """`function(argument)` in a new process. Raises UserError where it dies."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start, initargs=(threads,)) as pool:
        return _result(pool, function, argument)


def _result(pool: ProcessPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
    try:
        return pool.submit(function, *arguments).result()
    except BrokenProcessPool as error:
        raise UserError("a contender's process died: see above for why, or free memory") from error


def _start(threads: int, make: Callable[..., Contender] | None = None, arguments: tuple[Any, ...] = ()) -> None:
    os.environ.pop("ONEDNN_PRIMITIVE_CACHE_CAPACITY", None)  # inherited, where our process has set it for itself
    torch.set_num_threads(threads)
    if make is not None:
        _made["contender"] = make(*arguments)


def _work(number: int) -> Work:
    return _made["contender"](number)
