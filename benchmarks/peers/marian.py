"""`transformers`' MarianMT of the same size as ours."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no requests to the Hub

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.positions import require_added
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.nn.config import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer

# Parts of our weights' names, and of MarianMT's.
_NAMES = (
    ("source_embedding.tokens", "model.encoder.embed_tokens"),
    ("source_embedding.positions.table", "model.encoder.embed_positions"),
    ("target_embedding.tokens", "model.decoder.embed_tokens"),
    ("target_embedding.positions.table", "model.decoder.embed_positions"),
    ("encoder.layers", "model.encoder.layers"),
    ("decoder.layers", "model.decoder.layers"),
    ("attention_residual.norm", "self_attn_layer_norm"),
    ("source_residual.norm", "encoder_attn_layer_norm"),
    ("feed_forward_residual.norm", "final_layer_norm"),
    ("feed_forward.inner", "fc1"),
    ("feed_forward.outer", "fc2"),
    ("source_attention.", "encoder_attn."),
    (".attention.", ".self_attn."),
    ("attn.query", "attn.q_proj"),
    ("attn.key", "attn.k_proj"),
    ("attn.value", "attn.v_proj"),
    ("attn.output", "attn.out_proj"),
)


class MarianTranslator(nn.Module):
    """MarianMT with the same interface as the other peers. Its positions are sinusoidal unless ours are loaded."""

    def __init__(self, config: Seq2SeqConfig, target: Vocabulary) -> None:
        """Raises UserError if MarianMT does not support our kind of positions."""
        super().__init__()
        params = config.model
        assert isinstance(params, Seq2SeqParams)
        require_added(params)
        self.pad_id = config.target_pad_id
        self.marian = MarianMTModel(
            MarianConfig(
                vocab_size=config.source_size,
                decoder_vocab_size=config.target_size,
                max_position_embeddings=params.max_length,
                encoder_layers=params.encoder_layers,
                decoder_layers=params.decoder_layers,
                encoder_ffn_dim=params.d_ff,
                decoder_ffn_dim=params.d_ff,
                encoder_attention_heads=params.heads,
                decoder_attention_heads=params.heads,
                activation_function=params.activation,
                d_model=params.d_model,
                dropout=params.dropout,
                attention_dropout=params.attention_dropout,
                activation_dropout=params.activation_dropout,
                scale_embedding=params.scale_embeddings,
                pad_token_id=config.target_pad_id,
                bos_token_id=target.begin_id,
                eos_token_id=target.end_id,
                decoder_start_token_id=target.begin_id,
                forced_eos_token_id=None,
                share_encoder_decoder_embeddings=False,
                tie_word_embeddings=False,
            )
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source: (B, S); target: (B, T). Returns logits (B, T, V)."""
        output = self.marian(
            input_ids=source,
            attention_mask=source != self.pad_id,
            decoder_input_ids=target,
            decoder_attention_mask=target != self.pad_id,
            use_cache=False,
        )
        logits: Tensor = output.logits
        return logits

    @torch.no_grad()
    def generate(self, source: Tensor, *, beams: int, limit: int) -> list[list[int]]:
        """The output ids for each row of source (B, S), at most `limit`, without begin and end tokens."""
        found = self.marian.generate(  # type: ignore[misc]  # its stubs do not know their own class
            input_ids=source,
            attention_mask=source != self.pad_id,
            num_beams=beams,
            do_sample=False,
            max_new_tokens=limit,
        )
        end = self.marian.config.eos_token_id
        return [row[: row.index(end)] if end in row else row for row in found[:, 1:].tolist()]

    def load_ours(self, ours: Seq2SeqTransformer) -> None:
        """Copy our weights and positions."""
        state = {_renamed(name): tensor for name, tensor in ours.state_dict().items()}
        state["lm_head.weight"] = state.pop("output.weight")
        state["final_logits_bias"] = state.pop("output.bias")[None]
        self.marian.load_state_dict(state)


def _renamed(name: str) -> str:
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    return name
