"""Progress and metric callbacks; the default ignores them, so that the library runs anywhere."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from transformer.core.errors import UserError

T = TypeVar("T")
_DUE: ContextVar[float] = ContextVar("due", default=math.inf)
_last = math.inf
"""The deadline of the whole process."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Set a deadline for this thread: `check_deadline` raises after this many seconds."""
    token = _DUE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DUE.reset(token)


def bring_deadline_forward(seconds: float) -> None:
    """Give every thread of this process at most so many seconds from now: it is about to end."""
    global _last
    _last = time.monotonic() + seconds


def check_deadline() -> None:
    """Raise UserError if the deadline has passed; called between batches, and between texts that are split."""
    if time.monotonic() > min(_DUE.get(), _last):
        raise UserError("the answer is overdue, and given up: ask for fewer texts at once, or a narrower beam")


class Observer:
    """Receives progress and live metrics. This one ignores them; stages pass one that shows and records them."""

    def progress(self, items: Iterable[T], *, total: int | None, what: str, after: int = 0) -> Iterable[T]:
        """Yield `items` and show progress.

        total: their number if known; what: the name of the work; after: number of equally long items in later calls.
        """
        for item in items:
            check_deadline()
            yield item

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record live metrics at an optimizer step; they are not part of any output."""

    def say(self, line: str) -> None:
        """Show one line to the user."""

    def memory(self) -> Any:
        """Return plain values to save in the checkpoint and pass to `resume`."""
        return None

    def resume(self, step: int, memory: Any) -> None:
        """Resume after this optimizer step; memory: the value of `memory` at that step."""

    def once_checked(self, clean_up: Callable[[], None]) -> None:
        """Clean up once the results are final, such as removing checkpoints that could recreate them; here at once."""
        clean_up()
