"""LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014) layers, from scratch.

Weights are ordered as in torch.nn.LSTM and torch.nn.GRU; `input` is weight_ih, bias_ih, `hidden` weight_hh, bias_hh.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.config import RecurrentLayerParams
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import gather, scatter

State = tuple[Tensor, ...]
"""Recurrent state, (B, C) each: the hidden state and, for an LSTM, the cell state."""


class Steps:
    """Layout of a batch for recurrence: the real tokens of each step together, longest sequences first.

    A step computes only the sequences that have not ended, so padding costs nothing.
    """

    def __init__(self, real: Tensor) -> None:
        """real: (B, S), False on the padding at the end of a sequence."""
        self.order = real.sum(dim=1).argsort(descending=True, stable=True)
        """Row numbers (B,), longest first."""
        self.sizes: list[int] = [size for size in real.sum(dim=0).tolist() if size]
        """Number of rows that have a token, per step."""
        places = torch.arange(real.numel(), device=real.device).view(real.shape)[self.order].t()
        self.index = places[real[self.order].t()]
        """(N,): place of each token in the flattened batch (B * S)."""


class Cell(nn.Module, ABC):
    """A recurrence, with `gates` blocks of C rows in its matrices and `parts` tensors in its state."""

    gates: int
    parts: int

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = Linear(inputs, self.gates * width)
        self.hidden = Linear(width, self.gates * width)
        nn.init.zeros_(self.input.bias)
        nn.init.zeros_(self.hidden.bias)
        for block in self.hidden.weight.detach().chunk(self.gates):
            nn.init.orthogonal_(block)  # preserves gradient norms over many steps (Saxe et al. 2014)

    @abstractmethod
    def step(self, projected: Tensor, state: State) -> State:
        """Compute the next state; projected: (B, gates * C), the step's input after `input`."""

    def forward(self, inputs: Tensor, steps: Steps, *, backward: bool = False) -> tuple[Tensor, State]:
        """Read the tokens (N, I) of a batch, from left to right or `backward`.

        Returns the hidden states (N, C) and the final state, (B', C) each: without the rows that have no token.
        """
        # split, not slices: the gradient of a slice is as large as all steps
        projected = self.input(inputs).split(steps.sizes)
        state: State = (self.hidden.weight.new_zeros(0, self.width),) * self.parts
        outputs, ended = [], []
        for gates in projected[::-1] if backward else projected:
            if missing := len(gates) - len(state[0]):  # negative: the shortest rows end here
                ended.append([part[len(gates) :] for part in state])
                state = tuple(F.pad(part, (0, 0, 0, missing)) for part in state)
            state = self.step(gates, state)
            outputs.append(state[0])
        last = tuple(torch.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
        return torch.cat(outputs[::-1] if backward else outputs), last


class LSTMCell(Cell):
    """c' = f * c + i * g, h' = o * tanh(c'), with gates i, f, o and the candidate g (Gers et al. 2000, section 3)."""

    gates, parts = 4, 2

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        # Forget-gate bias 1: remember by default (Jozefowicz et al. 2015, section 2.2).
        nn.init.ones_(self.input.bias.detach()[width : 2 * width])

    def step(self, projected: Tensor, state: State) -> State:
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

    def step(self, projected: Tensor, state: State) -> State:
        """Compute the next hidden state."""
        (hidden,) = state
        sizes = [2 * self.width, self.width]
        from_input, new_input = torch.split(projected, sizes, dim=1)
        from_hidden, new_hidden = torch.split(self.hidden(hidden), sizes, dim=1)
        reset, update = (from_input + from_hidden).sigmoid().chunk(2, dim=1)
        candidate = (new_input + reset * new_hidden).tanh()
        return (candidate + update * (hidden - candidate),)


CELLS: dict[str, type[Cell]] = {"lstm": LSTMCell, "gru": GRUCell}


class Recurrent(nn.Module):
    """A stack of recurrent layers with dropout between them."""

    def __init__(self, layers: int, params: RecurrentLayerParams) -> None:
        super().__init__()
        directions = ["forwards", "backwards"] if params.bidirectional else ["forwards"]
        self.width = params.hidden * len(directions)
        """Output width, C': C per direction."""
        widths = [params.embedding] + [self.width] * (layers - 1)
        cells = ({name: CELLS[params.cell](width, params.hidden) for name in directions} for width in widths)
        self.layers = nn.ModuleList(map(nn.ModuleDict, cells))
        self.dropout = Dropout(params.dropout)

    def forward(self, inputs: Tensor, real: Tensor) -> tuple[Tensor, State]:
        """Run the layers. inputs: (B, S, I); real: (B, S), False on the padding at the end.

        Returns the top layer's states (B, S, C'), zero on padding, and its final state, (B, C') each: after the last
        real token and, backward, after the first one.
        """
        steps = Steps(real)
        states = gather(inputs.flatten(0, 1), steps.index)
        for index, layer in enumerate(self.layers):
            below = self.dropout(states) if index else states
            runs = [cell(below, steps, backward=bool(number)) for number, cell in enumerate(layer.children())]
            states = torch.cat([outputs for outputs, _ in runs], dim=1)
            final = tuple(torch.cat(parts, dim=1) for parts in zip(*(last for _, last in runs), strict=True))
        padded = scatter(states, steps.index, real.numel()).view(*real.shape, -1)
        return padded, tuple(scatter(part, steps.order[: len(part)], len(real)) for part in final)
