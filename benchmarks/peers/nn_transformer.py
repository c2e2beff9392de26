"""`torch.nn.Transformer` with embeddings and an output layer, of the same size as ours."""

import torch
from torch import Tensor, nn

from benchmarks.peers.straightforward import Embedding, seed_params
from transformer.families.seq2seq.interface import Seq2SeqConfig


class TorchTranslator(nn.Module):
    """The encoder-decoder: source ids (B, S) and target ids (B, T) to logits (B, T, V)."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        params, self.pad_id = seed_params(config), config.target_pad_id
        self.source_embedding = Embedding(config.source_size, params)
        self.target_embedding = Embedding(config.target_size, params)
        self.transformer = nn.Transformer(
            params.d_model,
            params.heads,
            params.encoder_layers,
            params.decoder_layers,
            params.d_ff,
            params.dropout,
            params.activation,
            batch_first=True,
        )
        # nn.Transformer adds a norm after each stack, which post-norm layers make redundant.
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.output = nn.Linear(params.d_model, config.target_size)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden, length = source == self.pad_id, target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        states = self.transformer(
            self.source_embedding(source),
            self.target_embedding(target),
            tgt_mask=later,
            src_key_padding_mask=hidden,
            tgt_key_padding_mask=target == self.pad_id,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        logits: Tensor = self.output(states)
        return logits
