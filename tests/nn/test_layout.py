"""A packed batch gives the values and gradients of the padded one."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.builders import classifier, seq2seq
from transformer.data.store import padded
from transformer.nn.layout import Packed, bucket_by_length


def sequences(lengths: list[int], *, high: int = 30, seed: int = 0) -> Tensor:
    draw = np.random.default_rng(seed)
    return torch.from_numpy(padded([draw.integers(1, high, size=length) for length in lengths], 0))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=80))
def test_split_and_join_are_inverse(lengths: list[int]) -> None:
    ids = sequences(lengths)
    layout = Packed(ids, 0, bucket_by_length(torch.tensor(lengths)))
    tokens = layout.token_ids[:, None].double()
    joined = layout.blocks.join(layout.blocks.split(tokens))
    assert torch.equal(layout.real(joined), tokens[: sum(lengths)])
    assert not joined[sum(lengths) :].any()
    masks = iter(layout.mask(layout).masks)

    def first(block: Tensor, real: Tensor) -> Tensor:
        mask = next(masks)
        assert torch.equal((block != 0).any(dim=-1, keepdim=True), real)
        assert real.all() if mask is None else torch.equal(mask[:, 0, 0], real[..., 0])
        return block[:, 0]

    assert torch.equal(layout.pooled(tokens, first)[:, 0], ids[:, 0].double()), "in the order of the batch"
    assert not list(masks)


def test_a_packed_token_keeps_its_place() -> None:
    layout = Packed(torch.tensor([[7, 8, 0], [9, 0, 0], [4, 5, 6]]), 0, [np.array([2, 0]), np.array([1])])
    assert layout.token_ids.tolist() == [7, 8, 9, 4, 5, 6, 0, 0]
    assert layout.positions.tolist() == [0, 1, 0, 0, 1, 2, 0, 0]


LENGTHS = [5, 2, 9, 3, 3, 8, 1, *range(1, 30), *range(1, 20)]  # more rows than in a block, the longest not first


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"positions": "sinusoidal"},
        {"positions": "rotary"},
        {"tie_embeddings": "all"},
        {"head_dim": 3},
    ],
)
def test_a_translation_model_computes_the_same(changes: dict[str, Any]) -> None:
    model = seq2seq(**changes).train()  # dropout is 0; this selects the path with gradients
    source, target = sequences(LENGTHS), sequences(LENGTHS[::-1], seed=1)
    states, padded = model(source, target, packed=True), model(source, target)[target != 0]
    torch.testing.assert_close(states, padded, rtol=0, atol=1e-12)
    _same_gradients(model, states, padded)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("pooling", ["first", "cls", "mean", "max", "attention"])
def test_a_classifier_computes_the_same(pooling: str, positions: str) -> None:
    model = classifier(pooling=pooling, positions=positions).train()
    ids = sequences(LENGTHS)
    packed, padded = model(ids, packed=True), model(ids)
    torch.testing.assert_close(packed, padded, rtol=0, atol=1e-12)
    _same_gradients(model, packed, padded)


def _same_gradients(model: nn.Module, one: Tensor, two: Tensor) -> None:
    parameters = list(model.parameters())
    weights = torch.randn_like(one)
    first, second = (
        torch.autograd.grad((value * weights).sum(), parameters, allow_unused=True) for value in (one, two)
    )
    for a, b in zip(first, second, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
