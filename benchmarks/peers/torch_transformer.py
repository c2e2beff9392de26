"""`torch.nn.Transformer` with embeddings and an output layer, of the same size as ours."""

import math

import torch
from torch import Tensor, nn

from benchmarks.peers.straightforward import Embedding
from transformer.families.seq2seq.nn.config import Seq2SeqParams
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer


class TorchTranslator(nn.Module):
    """The encoder-decoder."""

    def __init__(self, params: Seq2SeqParams, source_size: int, target_size: int, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.source_embedding, self.target_embedding = Embedding(source_size, params), Embedding(target_size, params)
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
        self.output = nn.Linear(params.d_model, target_size)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source: (B, S); target: (B, T). Returns logits (B, T, V)."""
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

    def load_ours(self, ours: Seq2SeqTransformer) -> None:
        """Copy our weights."""
        state = ours.state_dict()
        for name in ("source_embedding", "target_embedding"):
            state[f"{name}.positions.weight"] = state.pop(f"{name}.positions.table.weight")
        self.load_state_dict(dict(_renamed(state)))
        assert math.isclose(self.source_embedding.scale, ours.source_embedding.scale)


_NAMES = (
    ("attention_residual.norm", "norm1"),
    ("feed_forward.inner", "linear1"),
    ("feed_forward.outer", "linear2"),
    ("source_attention.output", "multihead_attn.out_proj"),
    ("attention.output", "self_attn.out_proj"),
)


def _renamed(state: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    renamed = []
    for name, tensor in state.items():
        stack = name.split(".")[0]
        if stack not in ("encoder", "decoder"):
            renamed.append((name, tensor))
        elif ".query." in name:
            parts = [state[name.replace(".query.", f".{part}.")] for part in ("query", "key", "value")]
            place, _, kind = name.partition(".query.")
            place = place.replace("source_attention", "multihead_attn")
            place = place if place.endswith("multihead_attn") else place.replace("attention", "self_attn")
            renamed.append((f"transformer.{place}.in_proj_{kind}", torch.cat(parts)))
        elif ".key." not in name and ".value." not in name:
            for ours, theirs in _NAMES:
                name = name.replace(ours, theirs)
            last = "norm2" if stack == "encoder" else "norm3"
            name = name.replace("source_residual.norm", "norm2").replace("feed_forward_residual.norm", last)
            renamed.append((f"transformer.{name}", tensor))
    return renamed
