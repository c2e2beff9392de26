"""Recurrent cells, layers and scores, compared with torch.nn and the papers' formulas, in float64."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer.families.seq2seq.recurrent import (
    AdditiveScore,
    AttentionWeights,
    DotScore,
    GeneralScore,
    RecurrentAttention,
    make_attention,
)
from transformer.nn.recurrent import CELLS, Cell, CellName, GRUCell, Layer, LSTMCell, Recurrent

INPUTS, WIDTH = 5, 6
CELL_NAMES = pytest.mark.parametrize("cell", ["lstm", "gru"])
REFERENCES: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def randomise(module: nn.Module) -> None:
    """Initial biases are zeros and ones, so a swapped pair would go unnoticed."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)


def copy_cell(theirs: nn.RNNBase, ours: Cell, suffix: str) -> None:
    with torch.no_grad():
        for kind, linear in (("ih", ours.input), ("hh", ours.hidden)):
            getattr(theirs, f"weight_{kind}_{suffix}").copy_(linear.weight)
            getattr(theirs, f"bias_{kind}_{suffix}").copy_(linear.bias)


def reference(ours: Recurrent, cell: str, bidirectional: bool) -> nn.RNNBase:
    theirs = REFERENCES[cell](
        INPUTS, WIDTH, num_layers=len(ours.layers), batch_first=True, bidirectional=bidirectional, dtype=torch.float64
    )
    for index, layer in enumerate(ours.layers):
        assert isinstance(layer, Layer)
        copy_cell(theirs, layer.forwards, f"l{index}")
        if layer.backwards is not None:
            copy_cell(theirs, layer.backwards, f"l{index}_reverse")
    return theirs


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


def test_lstm_step_agrees_with_torch() -> None:
    ours, theirs = LSTMCell(INPUTS, WIDTH).double(), nn.LSTMCell(INPUTS, WIDTH, dtype=torch.float64)
    randomise(ours)
    theirs.load_state_dict(_torch_names(ours))
    inputs, hidden, cell = torch.randn(3, INPUTS).double(), torch.randn(3, WIDTH).double(), torch.randn(3, WIDTH)
    expected = theirs(inputs, (hidden, cell.double()))
    for actual, wanted in zip(ours(ours.input(inputs), (hidden, cell.double())), expected, strict=True):
        close(actual, wanted)


def test_gru_step_agrees_with_torch() -> None:
    ours, theirs = GRUCell(INPUTS, WIDTH).double(), nn.GRUCell(INPUTS, WIDTH, dtype=torch.float64)
    randomise(ours)
    theirs.load_state_dict(_torch_names(ours))
    inputs, hidden = torch.randn(3, INPUTS).double(), torch.randn(3, WIDTH).double()
    close(ours(ours.input(inputs), (hidden,))[0], theirs(inputs, hidden))


def _torch_names(cell: Cell) -> dict[str, Tensor]:
    return {
        "weight_ih": cell.input.weight,
        "bias_ih": cell.input.bias,
        "weight_hh": cell.hidden.weight,
        "bias_hh": cell.hidden.bias,
    }


@CELL_NAMES
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(
    "lengths", [[7, 4, 1, 6], *(pytest.param(each, marks=pytest.mark.stress) for each in ([1], [1, 1], [5]))]
)
def test_layers_agree_with_torch_on_packed_sequences(
    cell: CellName, layers: int, bidirectional: bool, lengths: list[int]
) -> None:
    ours = Recurrent(cell, INPUTS, WIDTH, layers=layers, bidirectional=bidirectional, dropout=0.5).double().eval()
    randomise(ours)
    theirs = reference(ours, cell, bidirectional)
    inputs = torch.randn(len(lengths), max(lengths), INPUTS, dtype=torch.float64)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    packed = pack_padded_sequence(inputs, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, last = theirs(packed)
    outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    recurrence = ours(inputs, real)
    close(recurrence.states[real], outputs[real])
    directions = 2 if bidirectional else 1
    for part, expected in enumerate(last if isinstance(last, tuple) else (last,)):
        for layer in range(layers):
            both = torch.cat(list(expected[layer * directions : (layer + 1) * directions]), dim=1)
            close(recurrence.final[layer][part], both)


@CELL_NAMES
def test_padding_gives_nothing_whatever_stands_there(cell: CellName) -> None:
    ours = Recurrent(cell, INPUTS, WIDTH, layers=2, bidirectional=True, dropout=0.0).double()
    inputs = torch.randn(3, 6, INPUTS, dtype=torch.float64)
    real = torch.arange(6) < torch.tensor([[6], [0], [3]])
    before = ours(inputs, real)
    inputs[1], inputs[2, 3:] = 1e6, 1e6
    after = ours(inputs, real)
    close(after.states, before.states)
    assert (before.states[~real] == 0).all()
    assert all((part[1] == 0).all() for state in before.final for part in state), "a row with only padding"


@CELL_NAMES
def test_dropout_lies_between_layers_only(cell: CellName) -> None:
    inputs, real = torch.randn(2, 4, INPUTS, dtype=torch.float64), torch.ones(2, 4, dtype=torch.bool)
    for layers, changes in ((1, False), (2, True)):
        ours = Recurrent(cell, INPUTS, WIDTH, layers=layers, bidirectional=False, dropout=0.5).double().train()
        assert (not torch.equal(ours(inputs, real).states, ours(inputs, real).states)) == changes


def test_a_fresh_lstm_remembers() -> None:
    cell = CELLS["lstm"](INPUTS, WIDTH)
    assert (cell.input.bias + cell.hidden.bias).tolist() == [0.0] * WIDTH + [1.0] * WIDTH + [0.0] * 2 * WIDTH


def source(memory: int) -> tuple[Tensor, Tensor, Tensor]:
    """A query (2, C), encoded states (2, 5, memory) and their padding mask."""
    query, states = torch.randn(2, WIDTH).double(), torch.randn(2, 5, memory).double()
    return query, states, torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def test_scores_are_the_papers() -> None:
    query, states, _ = source(2 * WIDTH)
    dot, additive = DotScore(WIDTH, scaled=False), AdditiveScore(WIDTH, 2 * WIDTH)
    general = GeneralScore(WIDTH, 2 * WIDTH, scaled=False)
    general.double()
    additive.double()
    halves = torch.cat((additive.query.weight, additive.key.weight), dim=1)  # Luong's W_a, for [h_t; h_s]
    for row in range(2):
        for position in range(5):
            q, h = query[row], states[row, position]
            actual = dot(query, dot.keys(states[..., :WIDTH]))[row, position]
            close(actual, q.dot(h[:WIDTH]))
            actual = general(query, general.keys(states))[row, position]
            close(actual, q @ general.key.weight @ h)
            actual = additive(query, additive.keys(states))[row, position]
            close(actual, additive.energy.weight[0] @ (halves @ torch.cat((q, h))).tanh())


@pytest.mark.parametrize("name", ["dot", "general"])
def test_a_scaled_score_is_divided_by_the_root_of_its_width(name: str) -> None:
    query, states, real = source(WIDTH)
    plain, scaled = (make_attention(f"luong_{kind}{name}", WIDTH, WIDTH, None).double() for kind in ("", "scaled_"))
    scaled.load_state_dict(plain.state_dict())
    of_plain, of_scaled = (each.score(query, each.memory(states, real).keys) for each in (plain, scaled))
    close(of_scaled * math.sqrt(WIDTH), of_plain)
    assert of_plain.std() > 0


@pytest.mark.parametrize("name", ["bahdanau", "luong_dot", "luong_general", "luong_concat"])
def test_context_is_the_weighted_sum_of_real_positions(name: str) -> None:
    query, states, real = source(WIDTH)
    attention = make_attention(name, WIDTH, WIDTH, None).double()
    memory = attention.memory(states, real)
    scores = attention.score(query, memory.keys)
    context = attention(query, memory)
    for row, length in enumerate((5, 3)):
        weights = scores[row, :length].exp() / scores[row, :length].exp().sum()
        close(context[row], (weights[:, None] * states[row, :length]).sum(dim=0))


@pytest.mark.parametrize("window", [1, 2, 10])
def test_local_p_is_the_papers(window: int) -> None:
    query, states, real = source(2 * WIDTH)
    attention = make_attention("luong_general", WIDTH, 2 * WIDTH, window).double()
    assert attention.position is not None
    memory = attention.memory(states, real)
    weights = collected(attention, query, memory)
    scores = attention.score(query, memory.keys)
    for row, length in enumerate((5, 3)):
        hidden = (attention.position.inner.weight @ query[row]).tanh()
        centre = length / (1 + math.exp(-(attention.position.outer.weight[0] @ hidden).item()))
        inside = [s for s in range(length) if centre - window <= s <= centre + window]
        total = sum(math.exp(scores[row, s].item()) for s in inside)
        for s in range(5):
            expected = 0.0
            if s in inside:
                align = math.exp(scores[row, s].item()) / total
                expected = align * math.exp(-((s - centre) ** 2) / (2 * (window / 2) ** 2))
            assert weights[row, s].item() == pytest.approx(expected, abs=1e-10)


def collected(attention: RecurrentAttention, *arguments: Any) -> Tensor:
    """The weights, as a forward hook sees them."""
    seen: list[Tensor] = []
    handle = attention.weights.register_forward_hook(lambda module, inputs, output: seen.append(output))
    context = attention(*arguments)
    handle.remove()
    close((seen[0][:, :, None] * arguments[1].states).sum(dim=1), context)
    return seen[0]


@pytest.mark.parametrize("window", [None, 1])
def test_a_row_without_source_gives_zeros_and_no_nan(window: int | None) -> None:
    scores = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    weights = AttentionWeights(window)(scores, allowed, torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    assert (weights[1] == 0).all()
    assert (weights[0, [0, 2]] > 0).all()
    weights.square().sum().backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("energy", [-1e3, 1e3])
def test_the_window_holds_a_token_even_at_the_ends(energy: float) -> None:
    attention = make_attention("luong_general", WIDTH, WIDTH, 1).double()
    assert attention.position is not None
    nn.init.constant_(attention.position.outer.weight, energy)
    nn.init.constant_(attention.position.inner.weight, 1.0)
    _, states, real = source(WIDTH)
    weights = collected(attention, torch.ones(2, WIDTH).double(), attention.memory(states, real))
    assert (weights.sum(dim=1) > 0).all()
