"""Engines that run worker processes, and the termination of Python workers."""

import os
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread
from types import ModuleType

from transformer.core.errors import UserError


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
    return import_module("transformer.engines.ray_engine")


def end_with_parent() -> None:
    """From now on, exit this process when its parent exits for any reason.

    A parent that was killed closes no pipe whose end another child holds too, so its children would wait forever.
    """
    if parent := parent_process():
        Thread(target=_wait, args=(parent.sentinel,), daemon=True).start()


def _wait(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
