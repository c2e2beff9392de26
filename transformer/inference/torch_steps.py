"""PyTorch models as next-token generators for decoding."""

from abc import ABC, abstractmethod
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer.data.store import Ids
from transformer.inference.search import Blocked

# Hypotheses whose distributions a CPU computes at a time: a whole batch's would not fit into its cache.
_ROWS = 128


class Stepping(Protocol):
    """A network that generates token by token."""

    def start(self, source_ids: Tensor) -> Any:
        """Encode source_ids (B, S). Return the cache for `step`; its `select(rows)` selects rows."""

    def step(self, token_ids: Tensor, cache: Any) -> Tensor:
        """Return the states (B, C) after appending one token per row, token_ids (B,), to the cache."""


class _TorchCache:
    """A network's cache, indexed with NumPy arrays."""

    def __init__(self, cache: Any, device: torch.device) -> None:
        self.held, self.device = cache, device

    def select(self, rows: Ids) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), repeats allowed."""
        with torch.inference_mode():
            self.held.select(torch.from_numpy(rows).to(self.device))


class TorchSteps(ABC):
    """A network on its device, as a `Generator`."""

    def __init__(self, network: nn.Module, never: tuple[int, ...]) -> None:
        """network: with `start` and `step` (`Stepping`); never: tokens that are never generated."""
        self._module, self._network, self._never = network.eval(), cast(Stepping, network), never

    def start(self, source_ids: Ids) -> _TorchCache:
        """Encode source_ids (B, S); return the cache."""
        device = next(self._module.parameters()).device
        with torch.inference_mode():
            return _TorchCache(self._network.start(torch.from_numpy(source_ids).to(device)), device)

    @abstractmethod
    def _logits(self, states: Tensor) -> Tensor:
        """Compute the next-token logits (B, V) from states (B, C)."""

    def best(
        self, last: Ids, cache: _TorchCache, count: int, blocked: Blocked | None
    ) -> tuple[NDArray[np.floating[Any]], Ids]:
        """Return the `count` most probable next tokens and their log probabilities, (B, min(count, V)) each."""
        with torch.inference_mode():
            states = self._step(last, cache)
            if count == 1:
                log_probabilities = self._distribution(states, blocked)
                tokens = log_probabilities.argmax(dim=-1, keepdim=True)
                return log_probabilities.gather(1, tokens).cpu().numpy(), tokens.cpu().numpy()
            rows = _ROWS if states.device.type == "cpu" else len(states)
            starts = range(0, len(states), rows)
            found = [
                best(self._distribution(states[start : start + rows], _within(blocked, start, rows)), count)
                for start in starts
            ]
            values, indices = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
            return values, indices

    def log_probabilities(self, last: Ids, cache: _TorchCache, blocked: Blocked | None) -> NDArray[np.floating[Any]]:
        """Return the log probabilities of all next tokens, (B, V)."""
        with torch.inference_mode():
            found: NDArray[np.floating[Any]] = self._distribution(self._step(last, cache), blocked).cpu().numpy()
            return found

    def _step(self, last: Ids, cache: _TorchCache) -> Tensor:
        return self._network.step(torch.from_numpy(last).to(cache.device), cache.held)

    def _distribution(self, states: Tensor, blocked: Blocked | None) -> Tensor:
        """Compute the next-token log probabilities (B, V) from states (B, C)."""
        logits: Tensor = self._logits(states)
        for never in self._never:  # one by one: a list would be copied to the device at every step
            logits[:, never] = float("-inf")
        log_probabilities: Tensor = logits.log_softmax(dim=-1)
        if blocked is not None:
            log_probabilities[tuple(torch.from_numpy(part).to(logits.device) for part in blocked)] = float("-inf")
        return log_probabilities


def _within(blocked: Blocked | None, start: int, rows: int) -> Blocked | None:
    """Return the part of `blocked` for the `rows` rows from `start`, with row numbers relative to it."""
    if blocked is None:
        return None
    row, token = blocked
    inside = (row >= start) & (row < start + rows)
    return row[inside] - start, token[inside]


def best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Compute `distribution.best` faster over a whole vocabulary, and on any device."""
    width = scores.shape[1]
    values, indices = scores.topk(min(count + 1, width))
    if width > count:
        if values[:, count - 1].eq(values[:, count]).any():  # `topk` does not guarantee an order of ties
            values, indices = scores.sort(dim=1, descending=True, stable=True)
        values, indices = values[:, :count], indices[:, :count]
    indices, order = indices.sort(dim=1)
    values, back = torch.sort(values.gather(1, order), dim=1, descending=True, stable=True)
    return values, indices.gather(1, back)
