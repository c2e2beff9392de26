"""What decoding needs from a model, and what it returns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn


class _Positions(Protocol):
    @property
    def max_length(self) -> int: ...


class _Config(Protocol):
    @property
    def source_pad_id(self) -> int: ...
    @property
    def model(self) -> _Positions: ...


class Generator(Protocol):
    """A model that predicts the next target token, given the source and the target so far."""

    @property
    def config(self) -> _Config:
        """The model's sizes."""

    def start(self, source_ids: Tensor) -> Any:
        """Encode source_ids (B, S). Returns a cache whose `select(rows)` selects rows, with repeats, in any order."""

    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """The states (B, C) after one more target token per row, target_ids (B,), which is added to the cache."""

    @property
    def output(self) -> Callable[[Tensor], Tensor]:
        """Maps states (B, C) to logits (B, V)."""

    def eval(self) -> Any:
        """Switch to inference mode, as in `torch.nn.Module`."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights."""


@dataclass(frozen=True)
class Sources:
    """The sentences of one batch."""

    ids: Tensor
    """(B, S), padded."""
    limits: list[int]
    """(B,) Maximum number of target tokens of each."""
    seeds: list[tuple[int, ...]]
    """(B,) The sampling seed of each: its number, and, if a long source is split, the part's number."""


class Hypothesis(NamedTuple):
    """A decoded target sequence."""

    ids: list[int]
    """Without begin and end token."""
    score: float
    """The log probability, normalized by length."""
    log_probability: float
    """The sum over the tokens, including the end token; padding and begin token are excluded from the distribution."""
    finished: bool
    """Whether it ended with the end token, not at the maximum length."""
