"""Scattering and gathering rows is indexing; packed attention equals attention with a dense block-diagonal mask."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.nn.attention import KeyValue, scaled_dot_product_attention
from transformer.nn.kernels.attention import attend
from transformer.nn.kernels.linear import even
from transformer.nn.kernels.packing import Blocks, gather, scatter
from transformer.nn.layout import Packed

INDEX = torch.tensor([4, 0, 2])
ROWS = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_scatter_and_gather_are_indexing() -> None:
    places = torch.zeros(6, 5, dtype=torch.float64)
    places[INDEX] = ROWS
    assert torch.equal(scatter(ROWS, INDEX, 6), places)
    assert torch.equal(gather(places, INDEX), places[INDEX])
    weights = torch.randn(6, 5, dtype=torch.float64)
    rows = ROWS.clone().requires_grad_()
    (scattered,) = torch.autograd.grad((scatter(rows, INDEX, 6) * weights).sum(), rows)
    assert torch.equal(scattered, weights[INDEX])
    places = weights.clone().requires_grad_()
    (found,) = torch.autograd.grad((gather(places, INDEX) * ROWS).sum(), places)
    (expected,) = torch.autograd.grad((places[INDEX] * ROWS).sum(), places)
    assert torch.equal(found, expected)


def test_gradients_of_split_and_join() -> None:
    blocks = Blocks([(2, 3), (1, 1)], torch.tensor([0, 1, 2, 6, 3, 4, 7]), spare=1)
    tokens = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: blocks.join([b.exp() for b in blocks.split(x)]), tokens)


def packed(lengths: list[int], width: int) -> Packed:
    """Rows 0 and 2 in one block, row 1 in another, row 2 before row 0."""
    ids = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    return Packed(ids, 0, [np.array([2, 0]), np.array([1])])


def same_sequence(asked: list[int], seen: list[int]) -> Tensor:
    """For each pair of packed tokens; False for those that are there to make their number even."""
    owners = [torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)) for lengths in (asked, seen)]
    one, other = (
        F.pad(owner, (0, even(len(owner)) - len(owner)), value=none)
        for owner, none in zip(owners, (-1, -2), strict=True)
    )
    return one[:, None] == other


def heads(tokens: int) -> Tensor:
    return torch.randn(2, tokens, 4, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("seen", "causal"), [([2, 4, 5], False), ([3, 1, 2], True)])
def test_packed_attention_is_that_of_a_block_diagonal_mask(seen: list[int], causal: bool) -> None:
    asked = [3, 1, 2]
    queries, keys, dense = packed(asked, 3), packed(seen, max(seen)), same_sequence(asked, seen)
    given = query, key, value = heads(len(dense)), heads(dense.shape[1]), heads(dense.shape[1])
    found = attend(query, key, value, queries.mask(keys, causal=causal), causal=causal)
    expected = scaled_dot_product_attention(query, KeyValue(key, value), dense, causal=causal)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad((result * weights).sum(), given) for result in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
