"""Recurrent encoder-decoder (Sutskever et al. 2014; Cho et al. 2014), with or without attention."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.families.seq2seq.nn.config import RecurrentParams, Seq2SeqConfig
from transformer.families.seq2seq.nn.interface import Seq2SeqModel
from transformer.families.seq2seq.nn.recurrent_decoder import RecurrentCache, make_decoder
from transformer.nn.dropout import Dropout
from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import gather
from transformer.nn.recurrent import Recurrent, State, Steps


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
