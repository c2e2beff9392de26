"""The parts of an update: their rows, their draws and the sum of their gradients."""

import numpy as np
import pytest
import torch
from torch import Tensor

from transformer.training.step import TreeSum, cut, seed_part


def tree(parts: list[Tensor]) -> Tensor:
    total = TreeSum()
    for part in parts:
        total.add([part.clone()])
    (tensor,) = total.total()
    return tensor


@pytest.mark.parametrize("shards", [1, 2, 4, 16])
def test_the_trees_sum_is_the_same_for_every_number_of_workers(shards: int) -> None:
    """Gradients of such different sizes that every order of sums has its own bits."""
    parts = [torch.randn(257) * 10.0 ** (number % 7) for number in range(shards)]
    whole = tree(parts)
    for workers in (2**power for power in range(shards.bit_length())):
        each = shards // workers
        assert torch.equal(tree([tree(parts[start : start + each]) for start in range(0, shards, each)]), whole)
    assert shards <= 2 or not torch.equal(sum(parts[1:], parts[0]), whole), "any order would do"


def test_parts_have_every_row_once_and_in_order() -> None:
    batches = [np.arange(10), np.arange(10, 13)]
    parts = cut(batches, 4)
    assert [[rows.tolist() for rows in part] for part in parts] == [
        [[0, 1, 2], [10]],
        [[3, 4, 5], [11]],
        [[6, 7], [12]],
        [[8, 9]],
    ]


def test_every_part_of_every_update_has_its_own_draws() -> None:
    draws = set()
    for seed in (1, 2):
        for step in (1, 2, 3):
            for part in (0, 1):
                seed_part(seed, step, part)
                draws.add(torch.rand(()).item())
    assert len(draws) == 12
    seed_part(2, 3, 1)
    assert torch.rand(()).item() in draws
