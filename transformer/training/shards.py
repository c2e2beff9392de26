"""The parts of an update, and their sum: bit-identical for any number of processes.

An update's batches are cut into S = `train.shards` parts. Each draws its dropout from (seed, step, part) and adds its
gradient over a fixed binary tree, so that nothing depends on which process computes which part: the logical workers of
accuracy-consistent elasticity (EasyScale, Li et al. 2023; VirtualFlow, Or et al. 2022).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.encoded.batching import Ids


def cut(batches: Sequence[Ids], shards: int) -> list[list[Ids]]:
    """Return each part's consecutive rows of each batch; parts of a batch with fewer rows than shards may be empty."""
    by_batch = [np.array_split(rows, shards) for rows in batches]
    return [[rows for rows in part if len(rows)] for part in zip(*by_batch, strict=True)]


def seed_part(seed: int, step: int, part: int) -> None:
    """Seed torch's generators on all devices for one part of one update."""
    words = np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)
    torch.manual_seed(int(words[0]))


class TreeSum:
    """Sum 2^n lists of tensors over a fixed binary tree, as they arrive.

    Floating-point sums depend on the order; the fixed tree gives the same sum if subtrees were added elsewhere.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, list[Tensor]]] = []
        """Partial sums waiting for their sibling, each with the height of its subtree."""

    def add(self, tensors: list[Tensor]) -> None:
        """Add the next list, which may be overwritten in place."""
        height = 0
        while self._sums and self._sums[-1][0] == height:
            _, before = self._sums.pop()
            torch._foreach_add_(before, tensors)
            tensors, height = before, height + 1
        self._sums.append((height, tensors))

    def total(self) -> list[Tensor]:
        """Return the sum of all lists."""
        ((_, tensors),) = self._sums
        return tensors
