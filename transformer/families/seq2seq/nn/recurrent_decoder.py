"""Recurrent decoders: with a fixed context, with Bahdanau's attention and with Luong's.

Each is one loop over the given target positions: all of them in training, the next one in generation. The tokens of a
step are adjacent, N in all, as packed by `nn.recurrent.Steps`; `sizes` has the number of rows per step, and rows that
have ended leave the cache.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.families.seq2seq.nn.config import RecurrentParams
from transformer.families.seq2seq.nn.recurrent_attention import Memory, make_attention
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.recurrent import CELLS, Cell, State


@dataclass
class RecurrentCache:
    """The decoder's current states, and its per-step inputs from the source."""

    layers: list[State]
    """By decoder layer, (B, C) each."""
    fed: Tensor
    """Next input of the cell besides the token: the fixed context (B, M), or Luong's last attentional vector (B, C).
    Bahdanau's context is computed in the step."""
    memory: Memory | None
    """Keys and values of the source for attention; None without attention."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.layers = [tuple(part[rows] for part in state) for state in self.layers]
        self.fed = self.fed[rows]
        if self.memory is not None:
            self.memory = Memory(*(part[rows] for part in self.memory))

    def shorten(self, rows: int) -> None:
        """Keep only the first `rows` rows."""
        if rows < len(self.fed):
            self.layers = [tuple(part[:rows] for part in state) for state in self.layers]
            self.fed = self.fed[:rows]
            if self.memory is not None:
                self.memory = Memory(*(part[:rows] for part in self.memory))


class Bridge(nn.Module):
    """Initial decoder state from the encoder's last: tanh(W h) (Cho et al. 2014, A.1.2); W c for an LSTM's cell."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__()
        width = params.decoder_layers * params.hidden
        self.layers = params.decoder_layers
        self.parts = nn.ModuleList(Linear(memory, width) for _ in range(CELLS[params.cell].parts))

    def forward(self, final: State) -> list[State]:
        """Return one state per decoder layer, (B, C) each. final: (B, M) each."""
        hidden, *cell = (part(state) for part, state in zip(self.parts, final, strict=True))
        by_part = [part.chunk(self.layers, dim=1) for part in (hidden.tanh(), *cell)]
        return list(zip(*by_part, strict=True))


class Readout(nn.Module):
    """Maxout over pairs of U h + V e + W c (Cho et al. 2014, A.1.2; Bahdanau et al. 2015, A.2.2)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__()
        width = 2 * params.hidden
        self.hidden = Linear(params.hidden, width)
        self.embedded = Linear(params.embedding, width, bias=False)
        self.context = Linear(memory, width, bias=False)

    def forward(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """Combine hidden (N, C), embedded (N, E) and context (N, M). Returns (N, C)."""
        summed = self.hidden(hidden) + self.embedded(embedded) + self.context(context)
        states: Tensor = summed.unflatten(1, (-1, 2)).amax(dim=2)
        return states


class RecurrentDecoder(nn.Module, ABC):
    """Stacked cells; the bottom one reads the token's embedding and an additional input, `fed`."""

    def __init__(self, params: RecurrentParams, memory: int, *, fed: int) -> None:
        """memory: M, width of the encoder's states; fed: width of the additional input."""
        super().__init__()
        cell, width = CELLS[params.cell], params.hidden
        self.bottom = cell(params.embedding, width)
        self.upper = nn.ModuleList(cell(width, width) for _ in range(params.decoder_layers - 1))
        self.fed = Linear(fed, cell.gates * width, bias=False)
        self.bridge = Bridge(params, memory)
        self.dropout = Dropout(params.dropout)

    @abstractmethod
    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step. states: (B, S, M); real: (B, S); final: (B, M) each."""

    @abstractmethod
    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""

    def advance(self, gates: Tensor, cache: RecurrentCache) -> Tensor:
        """Run one step of all layers. gates: the bottom cell's projected input. Returns the top hidden state."""
        cache.shorten(len(gates))
        state = self.bottom(gates, cache.layers[0])
        moved = [state]
        for cell, before in zip(self._upper(), cache.layers[1:], strict=True):
            state = cell(cell.input(self.dropout(state[0])), before)
            moved.append(state)
        cache.layers = moved
        hidden: Tensor = state[0]
        return hidden

    def _upper(self) -> list[Cell]:
        return [cell for cell in self.upper if isinstance(cell, Cell)]


class FixedContextDecoder(RecurrentDecoder):
    """Feeds the encoder's last state to every step and every output (Cho et al. 2014, sections 2.2 and A.1.2)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=memory)
        self.readout = Readout(params, memory)

    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step. states: (B, S, M); real: (B, S); final: (B, M) each."""
        return RecurrentCache(self.bridge(final), fed=final[0], memory=None)

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""
        rows = torch.cat([torch.arange(size, device=embedded.device) for size in sizes])
        context = cache.fed.index_select(0, rows)
        gates = self.bottom.input(embedded) + self.fed(cache.fed).index_select(0, rows)
        hidden = torch.cat([self.advance(step, cache) for step in gates.split(sizes)])
        states: Tensor = self.readout(hidden, embedded, context)
        return states


class BahdanauDecoder(RecurrentDecoder):
    """Attends with the previous hidden state as the query (Bahdanau et al. 2015, section 3.1)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=memory)
        self.attention = make_attention(params.attention, params.hidden, memory, None)
        self.readout = Readout(params, memory)

    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step. states: (B, S, M); real: (B, S); final: (B, M) each."""
        return RecurrentCache(self.bridge(final), fed=final[0], memory=self.attention.memory(states, real))

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""
        hidden, contexts = [], []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))
            contexts.append(self.attention(cache.layers[-1][0], _memory(cache)))
            hidden.append(self.advance(gates + self.fed(contexts[-1]), cache))
        states: Tensor = self.readout(torch.cat(hidden), embedded, torch.cat(contexts))
        return states


class LuongDecoder(RecurrentDecoder):
    """Attends with the new hidden state; outputs and feeds back the attentional vector (Luong et al. 2015)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=params.hidden)
        self.attention = make_attention(params.attention, params.hidden, memory, params.local_window)
        self.attentional = Linear(memory + params.hidden, params.hidden, bias=False)

    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step, whose attentional vector is zeros; arguments as in the base class."""
        layers = self.bridge(final)
        return RecurrentCache(layers, torch.zeros_like(layers[-1][0]), self.attention.memory(states, real))

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return attentional vectors (N, C), tanh(W_c [c_t; h_t]) (eq. 5), each fed to the next step (section 3.3)."""
        states = []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))  # before cache.fed is read
            hidden = self.advance(gates + self.fed(cache.fed), cache)
            context = self.attention(hidden, _memory(cache))
            cache.fed = self.attentional(torch.cat((context, hidden), dim=1)).tanh()
            states.append(cache.fed)
        return torch.cat(states)


def _memory(cache: RecurrentCache) -> Memory:
    assert cache.memory is not None, "the cache of a decoder without attention"
    return cache.memory


def make_decoder(params: RecurrentParams, memory: int) -> RecurrentDecoder:
    """Return the decoder for `params.attention`; memory: M, width of the encoder's states."""
    if params.attention == "none":
        return FixedContextDecoder(params, memory)
    if params.attention == "bahdanau":
        return BahdanauDecoder(params, memory)
    return LuongDecoder(params, memory)
