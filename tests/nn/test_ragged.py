"""Without padding between the sequences every value and gradient is that of the padded batch."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.builders import classifier, seq2seq
from transformer.encoded.batching import pad
from transformer.nn.ragged import Ragged, groups_of_like_length


def sequences(lengths: list[int], *, high: int = 30, seed: int = 0) -> Tensor:
    draw = np.random.default_rng(seed)
    return pad([draw.integers(1, high, size=length) for length in lengths], 0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=80))
def test_split_and_join_are_inverse(lengths: list[int]) -> None:
    ids = sequences(lengths)
    layout = Ragged(ids, 0, groups_of_like_length(torch.tensor(lengths)))
    tokens = torch.randn(sum(lengths), 3, dtype=torch.float64)
    blocks = layout.split(tokens)
    assert torch.equal(layout.join(blocks), tokens)
    assert sum(block.shape[0] for block in blocks) == len(lengths)
    for block, places, mask in zip(blocks, layout.places, layout.masks, strict=True):
        assert torch.equal((block != 0).any(dim=-1, keepdim=True), places)
        assert places.all() if mask is None else torch.equal(mask[:, 0, 0], places[..., 0])


def test_gradients_of_split_and_join() -> None:
    lengths = [3, 1, 2]
    layout = Ragged(sequences(lengths), 0, [np.array([0, 2]), np.array([1])])
    tokens = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layout.join([b.exp() for b in layout.split(x)]), tokens)


LENGTHS = [5, 2, 9, 3, 3, 8, 1, *range(1, 30), *range(1, 20)]  # more rows than a block has, the longest not first


@pytest.mark.parametrize(
    "changes", [{}, {"norm": "pre"}, {"positions": "sinusoidal"}, {"tie_embeddings": "all"}, {"head_dim": 3}]
)
def test_a_translation_model_computes_the_same(changes: dict[str, Any]) -> None:
    model = seq2seq(**changes).train()  # dropout is 0: the path with gradients
    source, target = sequences(LENGTHS), sequences(LENGTHS[::-1], seed=1)
    states, real = model.real_states(source, target)
    padded = model(source, target)[target != 0]
    torch.testing.assert_close(states, padded, rtol=0, atol=1e-12)
    assert torch.equal(real, target != 0)
    _same_gradients(model, states, padded)


@pytest.mark.parametrize("pooling", ["first", "cls", "mean", "max", "attention"])
def test_a_classifier_computes_the_same(pooling: str) -> None:
    model = classifier(pooling=pooling).train()
    ids = sequences(LENGTHS)
    ragged, padded = model.forward_ragged(ids), model(ids)
    torch.testing.assert_close(ragged, padded, rtol=0, atol=1e-12)
    _same_gradients(model, ragged, padded)


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
