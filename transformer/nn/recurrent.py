"""LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014) layers, from scratch.

Weights are ordered as in torch.nn.LSTM and torch.nn.GRU: `input` is weight_ih and bias_ih, `hidden` weight_hh and
bias_hh.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import gather, scatter

State = tuple[Tensor, ...]
"""Recurrent state, (B, C) each: the hidden state and, for an LSTM, the cell state."""


class Cell(nn.Module, ABC):
    """One step of a recurrence; inputs are projected beforehand, for all steps in one product."""

    gates: int
    """Number of gates: blocks of C rows in the matrices."""
    parts: int
    """Number of tensors in a state."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, self.gates * width)
        self.hidden = Linear(width, self.gates * width)
        nn.init.zeros_(self.input.bias)
        nn.init.zeros_(self.hidden.bias)
        for block in self.hidden.weight.detach().chunk(self.gates):
            nn.init.orthogonal_(block)  # preserves gradient norms over many steps (Saxe et al. 2014)

    def start(self, batch: int) -> State:
        """Return the initial state: zeros."""
        return (self.hidden.weight.new_zeros(batch, self.width),) * self.parts

    @abstractmethod
    def forward(self, projected: Tensor, state: State) -> State:
        """Compute the next state; projected: (B, gates * C), the step's input after `input`."""


class LSTMCell(Cell):
    """c' = f * c + i * g, h' = o * tanh(c'), with gates i, f, o and the candidate g (Gers et al. 2000, section 3)."""

    gates, parts = 4, 2

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        # Forget-gate bias 1: remember by default (Jozefowicz et al. 2015, section 2.2).
        nn.init.ones_(self.input.bias.detach()[width : 2 * width])

    def forward(self, projected: Tensor, state: State) -> State:
        """Compute the next hidden and cell state."""
        hidden, cell = state
        gates = projected + self.hidden(hidden)
        in_forget, candidate, out = torch.split(gates, [2 * self.width, self.width, self.width], dim=1)
        enter, keep = in_forget.sigmoid().chunk(2, dim=1)
        cell = keep * cell + enter * candidate.tanh()
        return out.sigmoid() * cell.tanh(), cell


class GRUCell(Cell):
    """h' = (1 - z) * n + z * h, n = tanh(W x + r * (U h)), with reset gate r and update gate z.

    As in the first version of Cho et al. 2014, and in torch, r scales the product U h; later versions scale h.
    """

    gates, parts = 3, 1

    def forward(self, projected: Tensor, state: State) -> State:
        """Compute the next hidden state."""
        (hidden,) = state
        sizes = [2 * self.width, self.width]
        from_input, new_input = torch.split(projected, sizes, dim=1)
        from_hidden, new_hidden = torch.split(self.hidden(hidden), sizes, dim=1)
        reset, update = (from_input + from_hidden).sigmoid().chunk(2, dim=1)
        candidate = (new_input + reset * new_hidden).tanh()
        return (candidate + update * (hidden - candidate),)


CellName = Literal["lstm", "gru"]
CELLS: dict[CellName, type[Cell]] = {"lstm": LSTMCell, "gru": GRUCell}


class Steps:
    """Layout of a batch for recurrence: the real tokens of each step together, longest sequences first.

    A step computes only the sequences that have not ended, so padding costs nothing.
    """

    def __init__(self, real: Tensor) -> None:
        """real: (B, S), False on the padding at the end of a sequence."""
        lengths = real.sum(dim=1)
        self.shape = real.shape
        self.order = lengths.argsort(descending=True, stable=True)
        """Row numbers (B,), longest first."""
        self.sizes: list[int] = [size for size in real.sum(dim=0).tolist() if size]
        """Number of rows that have a token, per step."""
        flat = torch.arange(real.numel(), device=real.device).view(real.shape)[self.order].t()
        self.index = flat[real[self.order].t()]
        """(N,): index of each token in the flattened batch (B * S)."""

    def pack(self, padded: Tensor) -> Tensor:
        """Pack (B, S, C) into (N, C)."""
        return gather(padded.flatten(0, 1), self.index)

    def pad(self, packed: Tensor) -> Tensor:
        """Unpack (N, C) to (B, S, C), zero on padding."""
        return scatter(packed, self.index, self.shape.numel()).view(*self.shape, -1)

    def restore(self, rows: Tensor) -> Tensor:
        """Restore batch order: (B, C) with the longest sequences first -> (B, C)."""
        return scatter(rows, self.order, len(rows))


def run(cell: Cell, inputs: Tensor, steps: Steps, *, backward: bool = False) -> tuple[Tensor, State]:
    """Run a cell over a batch; return the hidden states (N, C) after every token and the final state (B, C).

    inputs: (N, I), as `steps` packs them; backward: read from right to left. The final state follows the row's last
    real token, or its first one when reading backward.
    """
    # split, not slices: the gradient of a slice is as large as all steps
    projected = cell.input(inputs).split(steps.sizes)
    walk = _from_the_right if backward else _from_the_left
    outputs, last = walk(cell, projected, steps.shape[0])
    hidden = torch.cat(outputs) if outputs else inputs.new_empty(0, cell.width)
    return hidden, tuple(steps.restore(part) for part in last)


def _from_the_left(cell: Cell, projected: Sequence[Tensor], batch: int) -> tuple[list[Tensor], State]:
    state, outputs, ended = cell.start(batch), [], []
    for gates in projected:
        if len(gates) < len(state[0]):
            ended.append(tuple(part[len(gates) :] for part in state))
            state = tuple(part[: len(gates)] for part in state)
        state = cell(gates, state)
        outputs.append(state[0])
    return outputs, _joined([state, *reversed(ended)])


def _from_the_right(cell: Cell, projected: Sequence[Tensor], batch: int) -> tuple[list[Tensor], State]:
    state, outputs = cell.start(0), []
    for gates in reversed(projected):
        if len(gates) > len(state[0]):
            state = _joined([state, cell.start(len(gates) - len(state[0]))])
        state = cell(gates, state)
        outputs.append(state[0])
    return outputs[::-1], _joined([state, cell.start(batch - len(state[0]))])


def _joined(states: list[State]) -> State:
    return tuple(torch.cat(parts) for parts in zip(*states, strict=True))


class Layer(nn.Module):
    """One recurrent layer, in one direction or in both with separate cells."""

    def __init__(self, cell: CellName, inputs: int, width: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.forwards = CELLS[cell](inputs, width)
        self.backwards = CELLS[cell](inputs, width) if bidirectional else None

    def forward(self, inputs: Tensor, steps: Steps) -> tuple[Tensor, State]:
        """Run one or both directions; their states are concatenated: (N, 2C) and (B, 2C)."""
        states, last = run(self.forwards, inputs, steps)
        if self.backwards is None:
            return states, last
        from_right, first = run(self.backwards, inputs, steps, backward=True)
        both = tuple(torch.cat(pair, dim=1) for pair in zip(last, first, strict=True))
        return torch.cat((states, from_right), dim=1), both


class Recurrence(NamedTuple):
    """The output of recurrent layers; C' is C, or 2C when bidirectional."""

    states: Tensor
    """(B, S, C'), of the top layer; zero on padding."""
    final: list[State]
    """Final state (B, C' each) per layer: after the last real token; backward, after the first one."""


class Recurrent(nn.Module):
    """A stack of recurrent layers with dropout between them."""

    def __init__(
        self, cell: CellName, inputs: int, width: int, *, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.width = width * (2 if bidirectional else 1)
        """Output width, C'."""
        widths = [inputs] + [self.width] * (layers - 1)
        self.layers = nn.ModuleList(Layer(cell, before, width, bidirectional=bidirectional) for before in widths)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, real: Tensor) -> Recurrence:
        """Run the layers. inputs: (B, S, I); real: (B, S), False on the padding at the end."""
        steps, final = Steps(real), []
        states = steps.pack(inputs)
        for index, layer in enumerate(self.layers):
            states, last = layer(self.dropout(states) if index else states, steps)
            final.append(last)
        return Recurrence(steps.pad(states), final)
