"""Recurrent decoders, compared with the papers' equations, written out per row and step with torch's cells."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.builders import recurrent_seq2seq
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq
from transformer.nn.recurrent import Cell

SOURCE, TARGET = torch.tensor([2, 9, 8, 7, 3]), torch.tensor([2, 4, 6, 11])
Theirs = nn.LSTMCell | nn.GRUCell


def torch_cell(cell: str, ours: Cell, fed: Tensor | None) -> Theirs:
    """The cell that reads [x; fed], where ours adds the two projections."""
    inputs = ours.input.weight if fed is None else torch.cat((ours.input.weight, fed), dim=1)
    kind = nn.LSTMCell if cell == "lstm" else nn.GRUCell
    theirs = kind(inputs.shape[1], ours.width, dtype=torch.float64)
    weights = {"weight_ih": inputs, "bias_ih": ours.input.bias}
    theirs.load_state_dict(weights | {"weight_hh": ours.hidden.weight, "bias_hh": ours.hidden.bias})
    return theirs


class Written:
    """The decoder of one sentence, from the equations."""

    def __init__(self, model: RecurrentSeq2Seq, cell: str) -> None:
        self.model, self.decoder = model, model.decoder
        lowest = torch_cell(cell, model.decoder.bottom, model.decoder.fed.weight)
        self.cells = [lowest, *(torch_cell(cell, upper, None) for upper in model.decoder.upper)]  # type: ignore[arg-type]
        self.encoded = model.encode(SOURCE[None])
        self.annotations = self.encoded.states[0]
        by_part = [
            linear(state[0]) for linear, state in zip(self.decoder.bridge.parts, self.encoded.final, strict=True)
        ]
        by_part[0] = by_part[0].tanh()
        self.states = [[part.view(len(self.cells), -1)[i] for part in by_part] for i in range(len(self.cells))]

    @property
    def top(self) -> Tensor:
        hidden: Tensor = self.states[-1][0]
        return hidden

    def advance(self, below: Tensor) -> Tensor:
        for index, cell in enumerate(self.cells):
            old = [part[None] for part in self.states[index]]
            new = cell(below[None], (old[0], old[1]) if isinstance(cell, nn.LSTMCell) else old[0])
            self.states[index] = [part[0] for part in (new if isinstance(new, tuple) else (new,))]
            below = self.states[index][0]
        return below

    def context(self, query: Tensor) -> Tensor:
        attention: Any = self.decoder.attention
        scores = torch.stack(
            [attention.score(query[None], attention.score.keys(h[None, None]))[0, 0] for h in self.annotations]
        )
        return scores.softmax(dim=0) @ self.annotations

    def maxout(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        readout: Any = self.decoder.readout
        summed = readout.hidden(hidden) + readout.embedded(embedded) + readout.context(context)
        return torch.stack([torch.maximum(summed[2 * i], summed[2 * i + 1]) for i in range(len(summed) // 2)])


def fixed(written: Written, embedded: Tensor) -> list[Tensor]:
    context = written.encoded.final[0][0]
    return [written.maxout(written.advance(torch.cat((e, context))), e, context) for e in embedded]


def bahdanau(written: Written, embedded: Tensor) -> list[Tensor]:
    states = []
    for e in embedded:
        context = written.context(written.top)
        states.append(written.maxout(written.advance(torch.cat((e, context))), e, context))
    return states


def luong(written: Written, embedded: Tensor) -> list[Tensor]:
    decoder: Any = written.decoder
    states = [torch.zeros(decoder.bottom.width, dtype=torch.float64)]
    for e in embedded:
        hidden = written.advance(torch.cat((e, states[-1])))
        states.append((decoder.attentional.weight @ torch.cat((written.context(hidden), hidden))).tanh())
    return states[1:]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [pytest.param(1, marks=pytest.mark.stress), 3])
@pytest.mark.parametrize(
    "attention",
    ["none", "bahdanau", "luong_dot", "luong_general", "luong_concat", "luong_scaled_dot", "luong_scaled_general"],
)
def test_states_follow_the_equations(cell: str, layers: int, attention: str) -> None:
    model = recurrent_seq2seq(cell=cell, attention=attention, decoder_layers=layers)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    equations = {"none": fixed, "bahdanau": bahdanau}.get(attention, luong)
    expected = equations(Written(model, cell), model.target_embedding(TARGET))
    actual = model(SOURCE[None], TARGET[None])[0]
    torch.testing.assert_close(actual, torch.stack(expected), rtol=0, atol=1e-10)
