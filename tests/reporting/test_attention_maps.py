"""Attention maps are the weights that the models really use, and collecting them changes nothing."""

import pytest
import torch
from torch import Tensor, nn

from tests.builders import LAYERS, classifier, seq2seq
from transformer.nn.attention import MultiHeadAttention, attention_weights
from transformer.nn.masks import padding_mask
from transformer.reporting.attention_maps import collect_attention

SOURCE = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 3, 0, 0]])
TARGET = torch.tensor([[2, 4, 6, 7], [2, 9, 5, 0]])
NAMES = [
    "encoder.layers.0.attention",
    "encoder.layers.1.attention",
    "decoder.layers.0.attention",
    "decoder.layers.0.source_attention",
    "decoder.layers.1.attention",
    "decoder.layers.1.source_attention",
]


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def attention() -> MultiHeadAttention:
    torch.manual_seed(1)
    return MultiHeadAttention(LAYERS["d_model"], LAYERS["heads"], head_dim=4, dropout=0.0).double()


def states(batch: int, length: int) -> Tensor:
    return torch.randn(batch, length, LAYERS["d_model"], dtype=torch.float64)


def from_weights(module: MultiHeadAttention, weights: Tensor, values: Tensor) -> Tensor:
    """Each head's weighted values, concatenated, through W^O (section 3.2.2)."""
    merged: Tensor = module.output((weights @ values).transpose(1, 2).flatten(2))
    return merged


def test_maps_have_the_modules_names_in_the_order_of_computation() -> None:
    model = seq2seq()
    with collect_attention(model) as maps:
        model(SOURCE, TARGET)
    assert list(maps) == NAMES
    shapes = {name: tuple(weights.shape) for name, weights in maps.items()}
    assert shapes[NAMES[0]] == (2, 4, 5, 5)
    assert shapes[NAMES[2]] == (2, 4, 4, 4)
    assert shapes[NAMES[3]] == (2, 4, 4, 5)


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_weights_times_values_are_the_modules_output(kind: str) -> None:
    module, queries = attention(), states(2, 5)
    memory = module.project(states(2, 7) if kind == "cross" else queries)
    keys = torch.arange(memory.key.shape[2])
    mask = None if kind == "causal" else (keys < torch.tensor([[7], [3]]))[:, None, None]
    with collect_attention(module) as maps:
        output = module(queries, memory, mask, causal=kind == "causal")
    (weights,) = maps.values()
    torch.testing.assert_close(from_weights(module, weights, memory.value), output, rtol=0, atol=1e-10)


def test_weights_sum_to_one_and_hide_padding_and_the_future() -> None:
    model = seq2seq()
    with collect_attention(model) as maps:
        model(SOURCE, TARGET)
    for name, weights in maps.items():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]).double(), rtol=0, atol=1e-12)
        if "decoder" in name and "source" not in name:
            assert (weights.triu(diagonal=1) == 0).all(), name
        else:
            assert (weights[1, :, :, 3:] == 0).all(), name
            assert (weights[0] > 0).all(), name


def test_a_query_without_any_key_has_zeros_as_weights() -> None:
    query = key = torch.randn(2, 4, 3, 4, dtype=torch.float64)
    weights = attention_weights(query, key, padding_mask(torch.tensor([[5, 5, 0], [0, 0, 0]]), 0))
    assert (weights[1] == 0).all()
    assert torch.isfinite(weights).all()
    assert (weights[0, :, :, :2] > 0).all()


@pytest.mark.parametrize("training", [False, True])
def test_looking_changes_no_bit(training: bool) -> None:
    model = seq2seq(dropout=0.3, attention_dropout=0.2).train(training)
    torch.manual_seed(5)
    expected = model(SOURCE, TARGET)
    torch.manual_seed(5)
    with collect_attention(model) as maps:
        actual = model(SOURCE, TARGET)
    assert torch.equal(actual, expected)
    assert actual.requires_grad == expected.requires_grad
    assert not any(weights.requires_grad for weights in maps.values())


def test_hooks_go_with_the_block_also_after_an_exception() -> None:
    model = classifier()
    with pytest.raises(IndexError), collect_attention(model):
        assert hooks(model) == 2
        raise IndexError
    assert hooks(model) == 0
    with collect_attention(model) as maps:
        model(SOURCE)
    before = {name: weights.clone() for name, weights in maps.items()}
    model(SOURCE)
    assert hooks(model) == 0
    assert all(torch.equal(weights, before[name]) for name, weights in maps.items())


class Additive(nn.Module):
    """Stands for a recurrent decoder's attention, whose output is its weights."""

    is_attention_weights = True

    def forward(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-1)


class Recurrent(nn.Module):
    """Attends once per step."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = Additive()

    def forward(self, scores: Tensor, *, squeezed: bool) -> Tensor:
        steps = [self.weights(scores[:, t] if squeezed else scores[:, t : t + 1]) for t in range(scores.shape[1])]
        return torch.stack(steps)


@pytest.mark.parametrize("squeezed", [False, True])
def test_modules_that_give_weights_are_collected_step_by_step(squeezed: bool) -> None:
    scores = torch.randn(2, 3, 5)
    model = Recurrent()
    with collect_attention(model) as maps:
        model(scores, squeezed=squeezed)
    assert list(maps) == ["weights"]
    assert torch.equal(maps["weights"], scores.softmax(dim=-1)[:, None])
