"""Threads of one process that use PyTorch models take turns."""

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
_turn = threading.RLock()


def _renew() -> None:
    """A thread of the parent, which the child does not have, may have held it."""
    global _turn
    _turn = threading.RLock()


os.register_at_fork(after_in_child=_renew)


def in_turns(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The same function, for one thread at a time; in other threads than the main one, on one core.

    Every thread that calls PyTorch gets a team of OpenMP threads. More of them than cores take turns at every product:
    four requests at once took twice the time of one after the other, and a single one outside of the main thread, too.
    """

    @wraps(function)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with _turn:
            if threading.current_thread() is threading.main_thread():
                return function(*args, **kwargs)
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                return function(*args, **kwargs)
            finally:
                torch.set_num_threads(before)

    return alone
