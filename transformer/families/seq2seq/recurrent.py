"""Recurrent encoder-decoder (Sutskever et al. 2014; Cho et al. 2014), with or without attention."""

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
    """h_t^T h_s (`dot`) or h_t^T W_a h_s (`general`; Luong et al. 2015, eq. 8); `scaled`: divided by sqrt(C)."""

    def __init__(self, name: str, query: int, memory: int) -> None:
        super().__init__()
        self.key = Linear(memory, query, bias=False) if name.endswith("general") else nn.Identity()
        self.scale = query**-0.5 if "scaled" in name else 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score query (B, C) against keys (B, S, C). Returns (B, S)."""
        return (keys @ (query * self.scale)[:, :, None])[:, :, 0]


class AdditiveScore(nn.Module):
    """v_a^T tanh(W_a h_t + U_a h_s) (Bahdanau et al. 2015, A.1.2); Luong's concat joins W_a and U_a (2015, eq. 8)."""

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
        product = name.endswith(("dot", "general"))
        self.score = ProductScore(name, query, memory) if product else AdditiveScore(query, memory)
        if self.window is not None:
            inner, outer = Linear(query, query, bias=False), Linear(query, 1, bias=False)
            self.position = nn.Sequential(OrderedDict(inner=inner, tanh=nn.Tanh(), outer=outer, share=nn.Sigmoid()))

    def forward(self, query: Tensor, states: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """Return the weights (B, S) for query (B, C); zeros for a row without a source. The rest as in the cache.

        With a window D, only positions in [p_t - D, p_t + D] count, p_t = S * sigmoid(v_p^T tanh(W_p h_t)) with the
        source's length S (Luong et al. 2015, eq. 9), and their softmax is multiplied by a Gaussian of D / 2 (eq. 10).
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
    """Fixed context (B, M) without attention, or Luong's last attentional vector (B, C)."""
    memory: tuple[Tensor, ...]
    """What attention reads: the source's states (B, S, M), their keys (B, S, A), the mask (B, S), False at padding."""

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
        parts = range(CELLS[params.cell].parts)
        self.parts = nn.ModuleList(Linear(memory, self.layers * params.hidden) for _ in parts)

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

    def forward(self, embedded: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """Combine embedded (N, E), hidden (N, C) and context (N, M). Returns (N, C)."""
        summed: Tensor = self.hidden(hidden) + self.embedded(embedded) + self.context(context)
        return summed.view(len(summed), -1, 2).amax(dim=2)


class RecurrentDecoder(nn.Module):
    """Stacked cells; the bottom one reads the token's embedding and an additional input, projected by `fed`."""

    def __init__(self, params: RecurrentParams, memory: int) -> None:
        """memory: M, width of the encoder's states."""
        super().__init__()
        cell, width, self.luong = CELLS[params.cell], params.hidden, params.attention.startswith("luong")
        self.bottom = cell(params.embedding, width)
        self.upper = nn.ModuleList(cell(width, width) for _ in range(params.decoder_layers - 1))
        self.fed = Linear(width if self.luong else memory, cell.gates * width, bias=False)
        self.bridge = Bridge(params, memory)
        self.dropout = Dropout(params.dropout)
        self.attention = None if params.attention == "none" else RecurrentAttention(params, memory)
        if self.luong:
            self.attentional = Linear(memory + width, width, bias=False)
        else:
            self.readout = Readout(params, memory)

    def start(self, states: Tensor, real: Tensor, final: State) -> RecurrentCache:
        """Return the cache before the first step. states: (B, S, M); real: (B, S); final: (B, M) each."""
        layers = self.bridge(final)
        fed = torch.zeros_like(layers[-1][0]) if self.luong else final[0]
        memory = () if self.attention is None else (states, self.attention.score.key(states), real)
        return RecurrentCache(layers, fed, memory)

    def forward(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Return the states (N, C) for the output layer; embedded: (N, E), the next tokens. Updates the cache."""
        if self.luong:
            return self._luong(embedded, sizes, cache)
        read = self._fixed if self.attention is None else self._bahdanau
        states: Tensor = self.readout(embedded, *read(embedded, sizes, cache))
        return states

    def _fixed(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> tuple[Tensor, Tensor]:
        """Feed the encoder's last state to every step and every output (Cho et al. 2014, sections 2.2 and A.1.2)."""
        rows = torch.cat([torch.arange(size, device=embedded.device) for size in sizes])
        context = cache.fed.index_select(0, rows)
        gates = self.bottom.input(embedded) + self.fed(cache.fed).index_select(0, rows)
        return torch.cat([self._advance(step, cache) for step in gates.split(sizes)]), context

    def _bahdanau(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> tuple[Tensor, Tensor]:
        """Feed the context of the previous hidden state (Bahdanau et al. 2015, section 3.1)."""
        hidden, contexts = [], []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))
            contexts.append(self._context(cache.layers[-1][0], cache))
            hidden.append(self._advance(gates + self.fed(contexts[-1]), cache))
        return torch.cat(hidden), torch.cat(contexts)

    def _luong(self, embedded: Tensor, sizes: list[int], cache: RecurrentCache) -> Tensor:
        """Output the attentional vectors tanh(W_c [c_t; h_t]), each fed to the next step (Luong et al. 2015, eq. 5)."""
        states = []
        for gates in self.bottom.input(embedded).split(sizes):
            cache.shorten(len(gates))  # before cache.fed is read
            hidden = self._advance(gates + self.fed(cache.fed), cache)
            cache.fed = self.attentional(torch.cat((self._context(hidden, cache), hidden), dim=1)).tanh()
            states.append(cache.fed)
        return torch.cat(states)

    def _advance(self, gates: Tensor, cache: RecurrentCache) -> Tensor:
        """Run one step of all layers. gates: the bottom cell's projected input. Returns the top hidden state."""
        cache.shorten(len(gates))
        moved = [self.bottom.step(gates, cache.layers[0])]
        for cell, before in zip(self.upper, cache.layers[1:], strict=True):
            assert isinstance(cell, Cell)
            moved.append(cell.step(cell.input(self.dropout(moved[-1][0])), before))
        cache.layers = moved
        return moved[-1][0]

    def _context(self, query: Tensor, cache: RecurrentCache) -> Tensor:
        """Return the context of query (B, C): the weighted sum (B, M) of the source's states."""
        assert self.attention is not None
        weights: Tensor = self.attention(query, *cache.memory)
        return (weights[:, None] @ cache.memory[0])[:, 0]


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
        self.decoder = RecurrentDecoder(params, self.encoder.width)
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
            cache, token_ids = self.start(source_ids[steps.order]), target_ids.flatten()[steps.index]
            return gather(self.step(token_ids, cache, steps.sizes), steps.index.argsort())
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

    def step(self, target_ids: Tensor, cache: RecurrentCache, sizes: list[int] | None = None) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache. Returns the states (B, C).

        sizes: of several steps at once, the number of rows of each; (N,) -> (N, C).
        """
        embedded = self.dropout(self.target_embedding(target_ids))
        states: Tensor = self.dropout(self.decoder(embedded, sizes or [len(target_ids)], cache))
        return states
