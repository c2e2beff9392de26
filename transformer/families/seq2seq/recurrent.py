"""Recurrent encoder-decoder (Sutskever et al. 2014; Cho et al. 2014), with or without attention."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.families.seq2seq.interface import RecurrentParams, Seq2SeqConfig, Seq2SeqModel
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import gather
from transformer.nn.recurrent import CELLS, Cell, Recurrent, State, Steps


class ProductScore(nn.Module):
    """score(h_t, h_s) = h_t^T h_s (`dot`) or h_t^T W_a h_s (`general`) (Luong et al. 2015, eq. 8).

    `scaled` divides it by sqrt(C), the query's width, as in Vaswani et al. 2017, section 3.2.1.
    """

    def __init__(self, name: str, query: int, memory: int) -> None:
        super().__init__()
        self.key = Linear(memory, query, bias=False) if name.endswith("general") else nn.Identity()
        self.scale = query**-0.5 if "scaled" in name else 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, C) against keys (B, S, C). Returns (B, S)."""
        return (keys @ (query * self.scale)[:, :, None])[:, :, 0]


class AdditiveScore(nn.Module):
    """score(s, h) = v_a^T tanh(W_a s + U_a h) (Bahdanau et al. 2015, A.1.2).

    Luong's concat, v_a^T tanh(W_a [h_t; h_s]) (eq. 8), is the same with W_a and U_a as the halves of one matrix.
    """

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        self.query = Linear(query, query, bias=False)
        self.key = Linear(memory, query, bias=False)
        self.energy = Linear(query, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, C) against keys (B, S, C). Returns (B, S)."""
        scores: Tensor = self.energy((self.query(query)[:, None] + keys).tanh())
        return scores[:, :, 0]


class RecurrentAttention(nn.Module):
    """Weights of the source's states for one query: of all, or of those in a window (local-p)."""

    is_attention_weights = True
    """Marks the output as an attention map for `reporting.attention_maps`."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        """memory: M, width of the encoder's states."""
        super().__init__()
        name, query, self.window = params.attention, params.hidden, params.local_window
        additive = name in ("bahdanau", "luong_concat")
        self.score = AdditiveScore(query, memory) if additive else ProductScore(name, query, memory)
        if self.window is not None:
            inner, outer = Linear(query, query, bias=False), Linear(query, 1, bias=False)
            self.position = nn.Sequential(OrderedDict(inner=inner, tanh=nn.Tanh(), outer=outer, share=nn.Sigmoid()))

    def forward(self, query: Tensor, states: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """Return the weights (B, S) for query (B, C); zeros for a row without a source. The rest as in the cache.

        With a window D, p_t = S * sigmoid(v_p^T tanh(W_p h_t)) is predicted (Luong et al. 2015, eq. 9; S is the length
        of the row's source); only positions in [p_t - D, p_t + D] count, and their softmax is multiplied by a Gaussian
        with sigma = D / 2 (eq. 10).
        """
        allowed = real
        if self.window is not None:
            length = real.sum(dim=1, keepdim=True, dtype=torch.float32)  # bf16 cannot represent all positions
            distance = torch.arange(real.shape[1], device=real.device) - length * self.position(query)
            allowed = real & (distance.abs() <= self.window)
        scores: Tensor = self.score(query, keys)
        lowest = torch.finfo(scores.dtype).min  # not -inf, whose softmax is NaN if nothing is allowed
        weights = scores.masked_fill(~allowed, lowest).softmax(dim=1).masked_fill(~allowed, 0.0)
        if self.window is not None:
            weights = weights * torch.exp(-(distance**2) / (2 * (self.window / 2) ** 2))
        return weights


@dataclass
class RecurrentCache:
    """The decoder's current states, and what it reads of the source."""

    layers: list[State]
    """By decoder layer, (B, C) each."""
    fed: Tensor
    """Luong's last attentional vector (B, C), zeros at first."""
    memory: tuple[Tensor, ...]
    """The source's states (B, S, M), their keys (B, S, A) and the mask (B, S), False at padding; without attention the
    fixed context (B, M) alone."""

    def select(self, rows: Tensor | slice) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        self.layers = [tuple(part[rows] for part in state) for state in self.layers]
        self.fed = self.fed[rows]
        self.memory = tuple(part[rows] for part in self.memory)

    def shorten(self, rows: int) -> None:
        """Keep only the first `rows` rows."""
        if rows < len(self.fed):
            self.select(slice(rows))


class Bridge(nn.Module):
    """Initial decoder state from the encoder's last: tanh(W h) (Cho et al. 2014, A.1.2); W c for an LSTM's cell."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__()
        self.layers = params.decoder_layers
        width = self.layers * params.hidden
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
    """Stacked cells; the bottom one reads the token's embedding and an additional input, projected by `fed`."""

    def __init__(self, params: RecurrentParams, memory: int, *, fed: int) -> None:
        """memory: M, width of the encoder's states; fed: width of the additional input."""
        super().__init__()
        cell, width = CELLS[params.cell], params.hidden
        self.bottom = cell(params.embedding, width)
        self.upper = nn.ModuleList(cell(width, width) for _ in range(params.decoder_layers - 1))
        self.fed = Linear(fed, cell.gates * width, bias=False)
        self.bridge = Bridge(params, memory)
        self.dropout = Dropout(params.dropout)
        self.attention = None if params.attention == "none" else RecurrentAttention(params, memory)

    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step. states: (B, S, M); real: (B, S); final: (B, M) each."""
        layers = self.bridge(final)
        memory = final[:1] if self.attention is None else (states, self.attention.score.key(states), real)
        return RecurrentCache(layers, torch.zeros_like(layers[-1][0]), memory)

    @abstractmethod
    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""

    def advance(self, gates: Tensor, cache: RecurrentCache) -> Tensor:
        """Run one step of all layers. gates: the bottom cell's projected input. Returns the top hidden state."""
        cache.shorten(len(gates))
        state = self.bottom(gates, cache.layers[0])
        moved = [state]
        for cell, before in zip(self.upper, cache.layers[1:], strict=True):
            assert isinstance(cell, Cell)
            state = cell(cell.input(self.dropout(state[0])), before)
            moved.append(state)
        cache.layers = moved
        hidden: Tensor = state[0]
        return hidden

    def attend(self, query: Tensor, cache: RecurrentCache) -> Tensor:
        """Return the context of query (B, C): the weighted sum (B, M) of the source's states."""
        assert self.attention is not None
        weights = self.attention(query, *cache.memory)
        context: Tensor = weights[:, None] @ cache.memory[0]
        return context[:, 0]


class FixedContextDecoder(RecurrentDecoder):
    """Feeds the encoder's last state to every step and every output (Cho et al. 2014, sections 2.2 and A.1.2)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=memory)
        self.readout = Readout(params, memory)

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""
        rows = torch.cat([torch.arange(size, device=embedded.device) for size in sizes])
        context = cache.memory[0].index_select(0, rows)
        gates = self.bottom.input(embedded) + self.fed(cache.memory[0]).index_select(0, rows)
        hidden = torch.cat([self.advance(step, cache) for step in gates.split(sizes)])
        states: Tensor = self.readout(hidden, embedded, context)
        return states


class BahdanauDecoder(RecurrentDecoder):
    """Attends with the previous hidden state and feeds the context (Bahdanau et al. 2015, section 3.1)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=memory)
        self.readout = Readout(params, memory)

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""
        hidden, contexts = [], []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))
            contexts.append(self.attend(cache.layers[-1][0], cache))
            hidden.append(self.advance(gates + self.fed(contexts[-1]), cache))
        states: Tensor = self.readout(torch.cat(hidden), embedded, torch.cat(contexts))
        return states


class LuongDecoder(RecurrentDecoder):
    """Attends with the new hidden state; outputs and feeds back the attentional vector (Luong et al. 2015)."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        super().__init__(params, memory, fed=params.hidden)
        self.attentional = Linear(memory + params.hidden, params.hidden, bias=False)

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return attentional vectors (N, C), tanh(W_c [c_t; h_t]) (eq. 5), each fed to the next step (section 3.3)."""
        states = []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))  # before cache.fed is read
            hidden = self.advance(gates + self.fed(cache.fed), cache)
            cache.fed = self.attentional(torch.cat((self.attend(hidden, cache), hidden), dim=1)).tanh()
            states.append(cache.fed)
        return torch.cat(states)


class RecurrentSeq2Seq(Seq2SeqModel):
    """Maps source and target ids to target states, which `output` maps to logits."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params = config.model
        assert isinstance(params, RecurrentParams)
        self.config = config
        self.teacher_forcing = params.teacher_forcing
        self.source_embedding = nn.Embedding(config.source_size, params.embedding)
        self.encoder = Recurrent(params.encoder_layers, params)
        self.target_embedding = nn.Embedding(config.target_size, params.embedding)
        decoders = {"none": FixedContextDecoder, "bahdanau": BahdanauDecoder}
        self.decoder = decoders.get(params.attention, LuongDecoder)(params, self.encoder.width)
        self.output = Linear(params.hidden, config.target_size)
        self.dropout = Dropout(params.dropout)

    def token_tables(self) -> Sequence[nn.Embedding]:
        """Return the embeddings of source and target tokens."""
        return self.source_embedding, self.target_embedding

    def pads(self, device: torch.device) -> bool:
        """False on every device: each step processes only the sequences that have not ended."""
        return False

    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) for source_ids (B, S) and target_ids (B, T); packed: (N, C), without padding.

        Teacher forcing below 1 is scheduled sampling (Bengio et al. 2015) at a fixed ratio: in training, each input
        token is the model's own with probability 1 - teacher_forcing, drawn per row and step.
        """
        real = target_ids != self.config.target_pad_id
        sampled = self.training and self.teacher_forcing < 1
        if packed and not sampled:
            steps = Steps(real)
            cache = self.start(source_ids[steps.order])
            return gather(self._next(target_ids.flatten()[steps.index], steps.sizes, cache), steps.index.argsort())
        cache = self.start(source_ids)
        stepped = [self.step(target_ids[:, 0], cache)]
        for given in target_ids.unbind(1)[1:]:
            if sampled:
                own = self.output(stepped[-1].detach()).argmax(dim=-1)
                given = torch.where(torch.rand(own.shape, device=own.device) < self.teacher_forcing, given, own)
            stepped.append(self.step(given, cache))
        states = torch.stack(stepped, dim=1)
        return states[real] if packed else states

    def start(self, source_ids: Tensor) -> RecurrentCache:
        """Encode source_ids (B, S). Returns the cache for `step`."""
        real = source_ids != self.config.source_pad_id
        states, final = self.encoder(self.dropout(self.source_embedding(source_ids)), real)
        return self.decoder.start(states, real, final)

    def step(self, target_ids: Tensor, cache: RecurrentCache) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache. Returns the states (B, C)."""
        return self._next(target_ids, [len(target_ids)], cache)

    def _next(self, token_ids: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Embed token_ids (N,) and run the decoder's forward."""
        states: Tensor = self.dropout(self.decoder(self.dropout(self.target_embedding(token_ids)), sizes, cache))
        return states
