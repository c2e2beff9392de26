"""Recurrent decoders, compared with the papers' equations, written out per row and step with torch's cells."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.builders import recurrent_seq2seq
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq

SOURCE, TARGET = torch.tensor([2, 9, 8, 7, 3]), torch.tensor([2, 4, 6, 11])
Theirs = nn.LSTMCell | nn.GRUCell
ATTENTIONS: list[tuple[str, int | None]] = [
    ("none", None),
    ("bahdanau", None),
    *((f"luong_{score}", None) for score in ("dot", "general", "concat", "scaled_dot", "scaled_general")),
    *(("luong_general", window) for window in (1, 2, 10)),
    ("luong_dot", 2),
]


def torch_cell(cell: str, ours: Any, fed: Tensor | None) -> Theirs:
    """The cell that reads [x; fed], where ours adds the two projections."""
    inputs = ours.input.weight if fed is None else torch.cat((ours.input.weight, fed), dim=1)
    kind = nn.LSTMCell if cell == "lstm" else nn.GRUCell
    theirs = kind(inputs.shape[1], ours.width, dtype=torch.float64)
    weights = {"weight_ih": inputs, "bias_ih": ours.input.bias}
    theirs.load_state_dict(weights | {"weight_hh": ours.hidden.weight, "bias_hh": ours.hidden.bias})
    return theirs


class Written:
    """The decoder of one sentence, from the equations."""

    def __init__(self, model: RecurrentSeq2Seq, cell: str, name: str, window: int | None) -> None:
        self.decoder: Any = model.decoder
        self.name, self.window = name, window
        lowest = torch_cell(cell, self.decoder.bottom, self.decoder.fed.weight)
        self.cells = [lowest, *(torch_cell(cell, upper, None) for upper in self.decoder.upper)]
        states, self.final = model.encoder(model.source_embedding(SOURCE[None]), SOURCE[None] > 0)
        self.annotations = states[0]
        by_part = [linear(state[0]) for linear, state in zip(self.decoder.bridge.parts, self.final, strict=True)]
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

    def score(self, q: Tensor, h: Tensor) -> Any:
        score = self.decoder.attention.score
        if self.name in ("bahdanau", "luong_concat"):
            both = torch.cat((score.query.weight, score.key.weight), dim=1)  # Luong's W_a, for [h_t; h_s]
            return score.energy.weight[0] @ (both @ torch.cat((q, h))).tanh()
        product = q @ (score.key.weight @ h if self.name.endswith("general") else h)
        return product / len(q) ** 0.5 if "scaled" in self.name else product

    def context(self, query: Tensor) -> Any:
        scores = torch.stack([self.score(query, h) for h in self.annotations])
        if self.window is None:
            return scores.softmax(dim=0) @ self.annotations
        position = self.decoder.attention.position
        centre = len(scores) * (position.outer.weight[0] @ (position.inner.weight @ query).tanh()).sigmoid()
        distance = torch.arange(len(scores)) - centre
        aligned = scores.masked_fill(distance.abs() > self.window, float("-inf")).softmax(dim=0)
        return (aligned * torch.exp(-(distance**2) / (2 * (self.window / 2) ** 2))) @ self.annotations

    def maxout(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        readout = self.decoder.readout
        summed = readout.hidden(hidden) + readout.embedded(embedded) + readout.context(context)
        return torch.stack([torch.maximum(summed[2 * i], summed[2 * i + 1]) for i in range(len(summed) // 2)])


def fixed(written: Written, embedded: Tensor) -> list[Tensor]:
    context = written.final[0][0]
    return [written.maxout(written.advance(torch.cat((e, context))), e, context) for e in embedded]


def bahdanau(written: Written, embedded: Tensor) -> list[Tensor]:
    states = []
    for e in embedded:
        context = written.context(written.top)
        states.append(written.maxout(written.advance(torch.cat((e, context))), e, context))
    return states


def luong(written: Written, embedded: Tensor) -> list[Tensor]:
    states = [torch.zeros_like(written.top)]
    for e in embedded:
        hidden = written.advance(torch.cat((e, states[-1])))
        joined = torch.cat((written.context(hidden), hidden))
        states.append((written.decoder.attentional.weight @ joined).tanh())
    return states[1:]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(("attention", "window"), ATTENTIONS)
def test_states_follow_the_equations(cell: str, attention: str, window: int | None) -> None:
    model = recurrent_seq2seq(cell=cell, attention=attention, local_window=window, decoder_layers=3)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    equations = {"none": fixed, "bahdanau": bahdanau}.get(attention, luong)
    expected = equations(Written(model, cell, attention, window), model.target_embedding(TARGET))
    actual = model(SOURCE[None], TARGET[None])[0]
    torch.testing.assert_close(actual, torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("energy", [-1e3, 1e3])
def test_the_window_holds_a_token_even_at_the_ends(energy: float) -> None:
    attention: Any = recurrent_seq2seq(attention="luong_general", local_window=1).decoder.attention
    nn.init.constant_(attention.position.outer.weight, energy)
    nn.init.constant_(attention.position.inner.weight, 1.0)
    states, real = torch.randn(3, 5, 24).double(), torch.arange(5) < torch.tensor([[5], [3], [0]])
    weights = attention(torch.ones(3, 12).double(), states, attention.score.key(states), real)
    assert (weights.sum(dim=1) > 0).tolist() == [True, True, False], "nothing without a source"
