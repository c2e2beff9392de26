"""What decoding needs of a model, and what it gives back."""

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
        """Its sizes."""

    def start(self, source_ids: Tensor) -> Any:
        """Encode source_ids (B, S). Returns a cache whose `select(rows)` keeps these rows, repeated and reordered."""

    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """The states (B, C) after one more target token a row, target_ids (B,); the cache grows by it."""

    @property
    def output(self) -> Callable[[Tensor], Tensor]:
        """States (B, C) to logits (B, V)."""

    def eval(self) -> Any:
        """Leave training, as of a `torch.nn.Module`."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights."""


@dataclass(frozen=True)
class Sources:
    """The sentences of one batch."""

    ids: Tensor
    """(B, S), padded."""
    limits: list[int]
    """(B,) Most target tokens of each."""
    seeds: list[tuple[int, ...]]
    """(B,) What seeds the sampling of each: its number, and that of its part where a long one is split."""


class Hypothesis(NamedTuple):
    """A target sequence that was found."""

    ids: list[int]
    """Without begin and end token."""
    score: float
    """The log probability, normalized by length."""
    log_probability: float
    """The sum over the tokens, the end token among them; padding and begin token have no share of it."""
    finished: bool
    """The end token was reached, not the greatest length."""
