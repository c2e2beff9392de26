"""Attention maps are the weights that the models really use, and collecting them changes nothing."""

import pytest
import torch
from torch import Tensor, nn

from tests.builders import LAYERS, classifier, recurrent_seq2seq, seq2seq
from transformer.nn.attention import MultiHeadAttention, attention_weights
from transformer.nn.attention_weights import collect_attention
from transformer.nn.masks import padding_mask

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


def states(batch: int, length: int) -> Tensor:
    return torch.randn(batch, length, LAYERS["d_model"], dtype=torch.float64)


def test_maps_have_the_modules_names_in_the_order_of_computation() -> None:
    model = seq2seq()
    with collect_attention(model) as maps:
        model(SOURCE, TARGET)
    assert list(maps) == NAMES
    assert [tuple(maps[NAMES[number]].shape) for number in (0, 2, 3)] == [(2, 4, 5, 5), (2, 4, 4, 4), (2, 4, 4, 5)]


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_weights_times_values_are_the_modules_output(kind: str) -> None:
    """Each head's weighted values, concatenated, through W^O (section 3.2.2)."""
    torch.manual_seed(1)
    module = MultiHeadAttention(LAYERS["d_model"], LAYERS["heads"], head_dim=4, dropout=0.0).double()
    queries = states(2, 5)
    memory = module.project(states(2, 7) if kind == "cross" else queries)
    keys = torch.arange(memory.key.shape[2])
    mask = None if kind == "causal" else (keys < torch.tensor([[7], [3]]))[:, None, None]
    with collect_attention(module) as maps:
        output = module(queries, memory, mask, causal=kind == "causal")
    (weights,) = maps.values()
    expected = module.output((weights @ memory.value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(expected, output, rtol=0, atol=1e-10)


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
    assert (weights[1] == 0).all() and (weights[0, :, :, :2] > 0).all()


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


@pytest.mark.parametrize("attention", ["bahdanau", "luong_dot"])
def test_a_recurrent_decoders_weights_are_collected_step_by_step(attention: str) -> None:
    model = recurrent_seq2seq(attention=attention)
    with collect_attention(model) as maps:
        model(SOURCE, TARGET)
    (weights,) = maps.values()
    assert weights.shape == (2, 1, TARGET.shape[1], SOURCE.shape[1])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 1, TARGET.shape[1]).double())
    assert (weights[1, :, :, 3:] == 0).all()
