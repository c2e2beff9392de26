"""Recurrent encoder-decoder (Sutskever et al. 2014; Cho et al. 2014), with or without attention."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.families.seq2seq.interface import RecurrentParams, Seq2SeqConfig, Seq2SeqModel
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import gather
from transformer.nn.recurrent import CELLS, Cell, Recurrent, State, Steps


class Memory(NamedTuple):
    """The encoded source as input to attention. M: width of the encoder's states; A: width of the keys."""

    states: Tensor
    """(B, S, M)."""
    keys: Tensor
    """(B, S, A): the states projected by the score, once per source."""
    real: Tensor
    """(B, S), False at padding."""


class DotScore(nn.Module):
    """score(h_t, h_s) = h_t^T h_s (Luong et al. 2015, eq. 8). Both states have the same width.

    `scaled` divides it by sqrt(C), the query's width, as in Vaswani et al. 2017, section 3.2.1.
    """

    def __init__(self, query: int, *, scaled: bool) -> None:
        super().__init__()
        self.scale = query**-0.5 if scaled else 1.0

    def keys(self, states: Tensor) -> Tensor:
        """Return the states unchanged."""
        return states

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, A) against keys (B, S, A). Returns (B, S)."""
        return (keys @ (query * self.scale)[:, :, None])[:, :, 0]


class GeneralScore(DotScore):
    """score(h_t, h_s) = h_t^T W_a h_s (Luong et al. 2015, eq. 8), scaled like `DotScore`."""

    def __init__(self, query: int, memory: int, *, scaled: bool) -> None:
        super().__init__(query, scaled=scaled)
        self.key = Linear(memory, query, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """Project states: (B, S, M) -> (B, S, C)."""
        projected: Tensor = self.key(states)
        return projected


class AdditiveScore(nn.Module):
    """score(s, h) = v_a^T tanh(W_a s + U_a h) (Bahdanau et al. 2015, A.1.2).

    Luong's concat, v_a^T tanh(W_a [h_t; h_s]) (eq. 8), is the same with W_a and U_a as the halves of one matrix.
    """

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        self.query = Linear(query, query, bias=False)
        self.key = Linear(memory, query, bias=False)
        self.energy = Linear(query, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """Project states: (B, S, M) -> (B, S, C)."""
        projected: Tensor = self.key(states)
        return projected

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, C) against keys (B, S, C). Returns (B, S)."""
        scores: Tensor = self.energy((self.query(query)[:, None] + keys).tanh())
        return scores[:, :, 0]


class PredictedPosition(nn.Module):
    """p_t = S * sigmoid(v_p^T tanh(W_p h_t)) (Luong et al. 2015, eq. 9); S is the length of the row's source."""

    def __init__(self, query: int) -> None:
        super().__init__()
        self.inner = Linear(query, query, bias=False)
        self.outer = Linear(query, 1, bias=False)

    def forward(self, query: Tensor, real: Tensor) -> Tensor:
        """Return the predicted positions (B, 1), from 0. query: (B, C); real: (B, S)."""
        share: Tensor = self.outer(self.inner(query).tanh()).sigmoid()
        length = real.sum(dim=1, keepdim=True, dtype=self.outer.weight.dtype)  # bf16 cannot represent all positions
        return length * share


class AttentionWeights(nn.Module):
    """Softmax of the scores; a module, so that a forward hook can read the attention map from its output."""

    is_attention_weights = True
    """Marks the module for `figures.attention_maps`."""

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window = window

    def forward(self, scores: Tensor, allowed: Tensor, centre: Tensor | None) -> Tensor:
        """Return the weights (B, S) of one target position; zeros for a row without allowed positions.

        scores: (B, S); allowed: (B, S); centre: (B, 1), p_t of local-p attention, or None. With it, only positions in
        [p_t - D, p_t + D] count, and their softmax is multiplied by a Gaussian with sigma = D / 2 (eq. 10).
        """
        if self.window is None or centre is None:
            return _masked_softmax(scores, allowed)
        distance = torch.arange(scores.shape[1], device=scores.device) - centre
        near = _masked_softmax(scores, allowed & (distance.abs() <= self.window))
        return near * torch.exp(-(distance**2) / (2 * (self.window / 2) ** 2))


def _masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    lowest = torch.finfo(scores.dtype).min  # not -inf, whose softmax is NaN if nothing is allowed
    return scores.masked_fill(~allowed, lowest).softmax(dim=1).masked_fill(~allowed, 0.0)


class RecurrentAttention(nn.Module):
    """Context of a query: a weighted sum of the encoder's states."""

    def __init__(self, score: DotScore | AdditiveScore, query: int, window: int | None) -> None:
        super().__init__()
        self.score = score
        self.position = PredictedPosition(query) if window is not None else None
        self.weights = AttentionWeights(window)

    def memory(self, states: Tensor, real: Tensor) -> Memory:
        """Return the inputs of `forward` that are computed once per source; states: (B, S, M); real: (B, S)."""
        return Memory(states, self.score.keys(states), real)

    def forward(self, query: Tensor, memory: Memory) -> Tensor:
        """Return the context (B, M) of query (B, C)."""
        centre = None if self.position is None else self.position(query, memory.real)
        weights = self.weights(self.score(query, memory.keys), memory.real, centre)
        context: Tensor = weights[:, None] @ memory.states
        return context[:, 0]


def make_attention(name: str, query: int, memory: int, window: int | None) -> RecurrentAttention:
    """Return the attention named `model.attention`; query, memory: widths of the decoder's and encoder's states."""
    scaled = "scaled" in name
    if name.endswith("dot"):
        return RecurrentAttention(DotScore(query, scaled=scaled), query, window)
    if name.endswith("general"):
        return RecurrentAttention(GeneralScore(query, memory, scaled=scaled), query, window)
    return RecurrentAttention(AdditiveScore(query, memory), query, window)


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


class Encoded(NamedTuple):
    """The encoded source. M: the encoder's width, including both directions."""

    states: Tensor
    """(B, S, M)."""
    real: Tensor
    """(B, S), False at padding."""
    final: State
    """Last state of the top layer, (B, M) each."""


class RecurrentSeq2Seq(Seq2SeqModel):
    """Maps source and target ids to target states, which `output` maps to logits."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, RecurrentParams)
        self.config = config
        self.teacher_forcing = params.teacher_forcing
        self.source_embedding = nn.Embedding(config.source_size, params.embedding)
        self.encoder = Recurrent(
            params.cell,
            params.embedding,
            params.hidden,
            layers=params.encoder_layers,
            bidirectional=params.bidirectional,
            dropout=params.dropout,
        )
        self.target_embedding = nn.Embedding(config.target_size, params.embedding)
        self.decoder = make_decoder(params, self.encoder.width)
        self.output = Linear(params.hidden, config.target_size)
        self.dropout = Dropout(params.dropout)

    def token_tables(self) -> Sequence[nn.Embedding]:
        """Return the embeddings of source and target tokens."""
        return self.source_embedding, self.target_embedding

    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) for source_ids (B, S) and target_ids (B, T); packed: (N, C), without padding.

        In training, teacher forcing below 1 replaces some of the target ids.
        """
        real = target_ids != self.config.target_pad_id
        if self.training and self.teacher_forcing < 1:
            states = self._forward_sampled(target_ids, self.start(source_ids))
            return states[real] if packed else states
        if not packed:
            return self._decode(target_ids, self.start(source_ids))
        steps = Steps(real)
        states = self._next(target_ids.flatten()[steps.index], steps.sizes, self.start(source_ids[steps.order]))
        return gather(states, steps.index.argsort())

    def pads(self, device: torch.device) -> bool:
        """False on every device: each step processes only the sequences that have not ended."""
        return False

    def encode(self, source_ids: Tensor) -> Encoded:
        """Encode source_ids (B, S)."""
        real = source_ids != self.config.source_pad_id
        states, final = self.encoder(self.dropout(self.source_embedding(source_ids)), real)
        return Encoded(states, real, final[-1])

    def start(self, source_ids: Tensor) -> RecurrentCache:
        """Encode source_ids (B, S). Returns the cache for `step`."""
        return self.decoder.start(*self.encode(source_ids))

    def step(self, target_ids: Tensor, cache: RecurrentCache) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache. Returns the states (B, C)."""
        return self._decode(target_ids[:, None], cache)[:, 0]

    def _decode(self, target_ids: Tensor, cache: RecurrentCache) -> Tensor:
        """Return the states (B, T, C) for the next tokens, target_ids (B, T)."""
        batch, length = target_ids.shape
        states = self._next(target_ids.t().flatten(), [batch] * length, cache)
        return states.view(length, batch, -1).transpose(0, 1)

    def _next(self, token_ids: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Embed token_ids (N,) and run the decoder's forward."""
        states: Tensor = self.dropout(self.decoder(self.dropout(self.target_embedding(token_ids)), sizes, cache))
        return states

    def _forward_sampled(self, target_ids: Tensor, cache: RecurrentCache) -> Tensor:
        """Run `forward` with scheduled sampling (Bengio et al. 2015) at a fixed ratio, drawn per row and step.

        Each input token is the model's own with probability 1 - teacher_forcing.
        """
        states = [self._decode(target_ids[:, :1], cache)]
        for reference in target_ids.unbind(1)[1:]:
            with torch.no_grad():
                own = self.output(states[-1][:, 0]).argmax(dim=-1)
            forced = torch.rand(own.shape, device=own.device) < self.teacher_forcing
            states.append(self._decode(torch.where(forced, reference, own)[:, None], cache))
        return torch.cat(states, dim=1)
