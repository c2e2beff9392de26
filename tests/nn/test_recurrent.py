"""Recurrent cells and layers, compared with torch.nn's in float64."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer.nn.config import RecurrentLayerParams
from transformer.nn.recurrent import CELLS, Recurrent

INPUTS, WIDTH = 5, 6
CELL_NAMES = pytest.mark.parametrize("cell", ["lstm", "gru"])
REFERENCES: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


def layers_of(cell: str, layers: int, bidirectional: bool, dropout: float = 0.0) -> Recurrent:
    """Biases are random too: initial ones are zeros and ones, so a swapped pair would go unnoticed."""
    torch.manual_seed(0)
    given = {"kind": "recurrent", "cell": cell, "embedding": INPUTS, "hidden": WIDTH, "max_length": 9}
    params = RecurrentLayerParams.model_validate(given | {"bidirectional": bidirectional, "dropout": dropout})
    made = Recurrent(layers, params).double()
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    return made


def reference(ours: Recurrent, cell: str, bidirectional: bool) -> nn.RNNBase:
    theirs = REFERENCES[cell](
        INPUTS, WIDTH, num_layers=len(ours.layers), batch_first=True, bidirectional=bidirectional, dtype=torch.float64
    )
    names = {"input": "ih", "hidden": "hh", "forwards": "", "backwards": "_reverse"}
    for name, weights in ours.state_dict().items():
        _, layer, direction, linear, kind = name.split(".")
        getattr(theirs, f"{kind}_{names[linear]}_l{layer}{names[direction]}").data.copy_(weights)
    return theirs


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


@CELL_NAMES
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [[7, 4, 1, 6], [1]])
def test_layers_agree_with_torch_on_packed_sequences(
    cell: str, layers: int, bidirectional: bool, lengths: list[int]
) -> None:
    ours = layers_of(cell, layers, bidirectional, dropout=0.5).eval()
    inputs = torch.randn(len(lengths), max(lengths), INPUTS, dtype=torch.float64)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    packed = pack_padded_sequence(inputs, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, last = reference(ours, cell, bidirectional)(packed)
    outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    states, final = ours(inputs, real)
    close(states[real], outputs[real])
    directions = 2 if bidirectional else 1
    for part, expected in zip(final, last if isinstance(last, tuple) else (last,), strict=True):
        close(part, torch.cat(list(expected[-directions:]), dim=1))


@CELL_NAMES
def test_padding_gives_nothing_whatever_stands_there(cell: str) -> None:
    ours = layers_of(cell, layers=2, bidirectional=True)
    inputs = torch.randn(3, 6, INPUTS, dtype=torch.float64)
    real = torch.arange(6) < torch.tensor([[6], [0], [3]])
    before, final = ours(inputs, real)
    inputs[1], inputs[2, 3:] = 1e6, 1e6
    close(ours(inputs, real)[0], before)
    assert (before[~real] == 0).all()
    assert all((part[1] == 0).all() for part in final), "a row with only padding"


@CELL_NAMES
def test_dropout_lies_between_layers_only(cell: str) -> None:
    inputs, real = torch.randn(2, 4, INPUTS, dtype=torch.float64), torch.ones(2, 4, dtype=torch.bool)
    for layers, changes in ((1, False), (2, True)):
        ours = layers_of(cell, layers, bidirectional=False, dropout=0.5)
        assert (not torch.equal(ours(inputs, real)[0], ours(inputs, real)[0])) == changes


def test_a_fresh_lstm_remembers() -> None:
    cell = CELLS["lstm"](INPUTS, WIDTH)
    assert (cell.input.bias + cell.hidden.bias).tolist() == [0.0] * WIDTH + [1.0] * WIDTH + [0.0] * 2 * WIDTH
