"""What long work tells about itself: nothing by default, so that the library runs anywhere."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Observer:
    """Receives progress and live metrics. This one ignores them; a stage passes one that shows and records them."""

    def progress(self, items: Iterable[T], *, total: int | None, what: str) -> Iterable[T]:
        """Pass `items` through and show how far it is; total: their number if known; what: the name of the work."""
        return items

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Live metric points at an optimizer step; they are in no output."""

    def say(self, line: str) -> None:
        """One line for the person who watches."""

    def memory(self) -> Any:
        """What a later process must be told to go on as this one: plain values, saved with the work's own state."""
        return None

    def resume(self, step: int, memory: Any) -> None:
        """The work goes on from this optimizer step; memory: what `memory` gave then."""

    def once_checked(self, clean_up: Callable[[], None]) -> None:
        """What to do when it is sure that the results stand, such as to remove what could make them again: at once."""
        clean_up()
