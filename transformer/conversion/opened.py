"""An engine's model, usable across fork and pickling."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from transformer.checkpoint.machine import usable_cores

Model = TypeVar("Model")


class Opened(Generic[Model]):
    """A model that also answers in a forked child and after pickling, where it is opened again.

    An engine's threads do not survive a fork, and the child would wait for them forever; there it has one thread.
    """

    def __init__(self, make: Callable[[int], Model], threads: int | None) -> None:
        """make: opens the model with a number of threads; threads: None for all processors."""
        self._make, self._threads = make, threads
        self._process, self._model = os.getpid(), make(threads or usable_cores())

    def __call__(self) -> Model:
        """Return this process's model."""
        if self._process != os.getpid():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._model))  # never freed: that would wait for its threads
            self._process, self._model = os.getpid(), self._make(1)
        return self._model

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the recipe for opening it."""
        return type(self), (self._make, self._threads)
