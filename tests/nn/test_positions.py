"""Positions in attention: rotary ones against complex numbers; any kind with packing, caches and attention maps."""

import math

import pytest
import torch
from torch import Tensor, nn

from tests.builders import LAYERS, classifier, seq2seq
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.nn.attention import MultiHeadAttention
from transformer.nn.attention_weights import collect_attention
from transformer.nn.config import TransformerParams
from transformer.nn.layers import DecoderLayer, Encoder, EncoderLayer
from transformer.nn.positions import AttentionPositions, RotaryPositions, sinusoidal_table

D = 6
SOURCE = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 3, 0, 0], [4, 6, 6, 3, 0]])
TARGET = torch.tensor([[2, 4, 6, 11, 5, 9], [2, 9, 5, 7, 4, 4], [2, 8, 8, 12, 13, 14]])


class DistancePositions(AttentionPositions):
    """A trained penalty per head for each position between query and key (after Press et al. 2022, ALiBi)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.linspace(0.1, 0.7, heads, dtype=torch.float64))

    def bias(self, queries: int, keys: int) -> Tensor:
        """Minus the slope times the distance, (H, T, S)."""
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        return -self.slopes[:, None, None] * distance.abs()


def translation(kind: str) -> Seq2SeqTransformer:
    """A model with positions of this kind; `distance` is inserted into it."""
    if kind != "distance":
        return seq2seq(positions=kind)
    model = seq2seq(positions="none")
    for layer in model.modules():
        if isinstance(layer, EncoderLayer | DecoderLayer):
            layer.attention.positions = DistancePositions(layer.attention.heads)
    return model


def turned(states: Tensor, positions: Tensor) -> Tensor:
    """Each pair of dimensions as a complex number, times e^{i m theta} (Su et al. 2021, eq. 12)."""
    numbers = torch.view_as_complex(states.reshape(*states.shape[:-1], -1, 2))
    theta = 10000.0 ** (-torch.arange(0, states.shape[-1], 2, dtype=torch.float64) / states.shape[-1])
    angles = positions[:, None] * theta
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def test_sinusoidal_table_is_the_papers() -> None:
    table = sinusoidal_table(50, 6)
    for position in (0, 1, 49):
        for dimension in range(3):
            angle = position / 10000 ** (2 * dimension / 6)
            assert table[position, 2 * dimension].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * dimension + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 7, D), (3, 7, D)])
def test_rotary_positions_turn_complex_numbers(shape: tuple[int, ...]) -> None:
    heads = torch.randn(shape, dtype=torch.float64)
    positions = torch.tensor([0, 1, 2, 5, 11, 48, 49])
    found = RotaryPositions(50, D).double().transform(heads, positions)
    torch.testing.assert_close(found, turned(heads, positions), rtol=0, atol=1e-6)  # the table is float32


def test_rotary_attention_is_the_equation_with_turned_queries_and_keys() -> None:
    module = MultiHeadAttention(12, 2, head_dim=D, dropout=0.0, positions=RotaryPositions(9, D)).double()
    states, positions = torch.randn(2, 5, 12, dtype=torch.float64), torch.arange(3, 8)

    def heads(linear: nn.Linear) -> Tensor:
        split: Tensor = linear(states).view(2, 5, 2, D).transpose(1, 2)
        return split

    query, key = turned(heads(module.query), positions), turned(heads(module.key), positions)
    weights = (query @ key.mT / D**0.5).softmax(dim=-1)
    expected = module.output((weights @ heads(module.value)).transpose(1, 2).flatten(2))
    found = module(states, module.project(states, positions), positions=positions)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_attention_to_the_source_knows_no_positions() -> None:
    layer = DecoderLayer(TransformerParams(**(LAYERS | {"positions": "rotary"}))).double()
    states, encoded = torch.randn(2, 3, 4, LAYERS["d_model"], dtype=torch.float64).unbind()
    mixed = encoded[:, torch.tensor([2, 0, 3, 1])]
    one, other = (layer(states, source, None, positions=torch.arange(4)) for source in (encoded, mixed))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_rotary_attention_without_positions_is_refused() -> None:
    (layer,) = Encoder(1, TransformerParams(**(LAYERS | {"positions": "rotary"}))).layers
    with pytest.raises(ValueError, match="needs the positions"):
        layer(torch.randn(1, 5, LAYERS["d_model"]), None)


KINDS = pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "none", "distance"])


@KINDS
def test_steps_of_chosen_and_repeated_rows_are_the_whole_target(kind: str) -> None:
    """As in beam search: two hypotheses per source at first, then rows of only some sources."""
    model = translation(kind)
    cache, rows = model.start(SOURCE), torch.arange(len(SOURCE))
    given = TARGET[:, :0]
    for choice, tokens in (
        ([0, 0, 1, 1, 2, 2], [2] * 6),
        ([1, 0, 3, 2, 5, 4], [4, 5, 6, 7, 8, 9]),
        ([4, 5, 0, 1], [9, 8, 7, 6]),
        ([3, 3, 0], [4, 6, 8]),
    ):
        chosen = torch.tensor(choice)
        cache.select(chosen)
        rows, given = rows[chosen], torch.cat((given[chosen], torch.tensor(tokens)[:, None]), dim=1)
        states = model.step(given[:, -1], cache)
        torch.testing.assert_close(states, model(SOURCE[rows], given)[:, -1], rtol=0, atol=1e-12)


@KINDS
def test_maps_of_steps_are_those_of_the_whole_target(kind: str) -> None:
    model = translation(kind)
    with collect_attention(model) as whole:
        model(SOURCE, TARGET)
    with torch.no_grad(), collect_attention(model) as stepwise:
        cache = model.start(SOURCE)
        for position in range(TARGET.shape[1]):
            assert cache.length == position
            model.step(TARGET[:, position], cache)
    assert list(whole) == list(stepwise)
    for name, weights in whole.items():
        torch.testing.assert_close(stepwise[name], weights, rtol=0, atol=1e-12)


@KINDS
def test_packed_is_padded(kind: str) -> None:
    model, target = translation(kind).train(), TARGET.clone()
    target[1, 2:], target[2, 5:] = 0, 0
    packed, padded = model(SOURCE, target, packed=True), model(SOURCE, target)[target != 0]
    torch.testing.assert_close(packed, padded, rtol=0, atol=1e-12)
    weights = torch.randn_like(packed)
    parameters = [parameter for name, parameter in model.named_parameters() if not name.startswith("output")]
    gradients = [torch.autograd.grad((states * weights).sum(), parameters) for states in (packed, padded)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_packed_sequences_have_no_maps() -> None:
    model = classifier()
    with pytest.raises(TypeError, match="no attention maps"), collect_attention(model):
        model(SOURCE, packed=True)
