"""`transformers`' MarianMT of the same size as ours."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no requests to the Hub

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.straightforward import seed_params
from transformer.core.observer import Observer
from transformer.data.store import Ids, padded, sorted_batches
from transformer.data.vocabulary import Vocabulary, clip
from transformer.families.seq2seq.decode import DecodingParams
from transformer.families.seq2seq.interface import Seq2SeqConfig
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.inference.search import Hypothesis

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
        super().__init__()
        params, self.pad_id = seed_params(config), config.target_pad_id
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
        output = self.marian(
            input_ids=source,
            attention_mask=source != self.pad_id,
            decoder_input_ids=target,
            decoder_attention_mask=target != self.pad_id,
            use_cache=False,
        )
        logits: Tensor = output.logits
        return logits

    def load_ours(self, ours: Seq2SeqTransformer) -> None:
        """Copy our weights and positions."""
        state = {_renamed(name): tensor for name, tensor in ours.state_dict().items()}
        sinusoids = {name: table for name, table in ours.named_buffers() if name.endswith("positions.table")}
        state |= {f"{_renamed(name)}.weight": table for name, table in sinusoids.items()}
        state["lm_head.weight"] = state.pop("output.weight")
        state["final_logits_bias"] = state.pop("output.bias")[None]
        self.marian.load_state_dict(state)


class MarianDecoder:
    """MarianMT as a translator's `Decoder`: the best hypothesis of each source."""

    knows_stopping = False

    def __init__(self, marian: MarianMTModel) -> None:
        """marian: in evaluation mode."""
        self._marian = marian

    @property
    def positions(self) -> int:
        return int(self._marian.config.max_position_embeddings)

    @torch.no_grad()
    def __call__(
        self, sources: Sequence[Ids], params: DecodingParams, observer: Observer, numbers: Sequence[int] | None
    ) -> list[list[Hypothesis]]:
        """Greedy or beam search; scores are not reported. Of a long source the beginning is translated."""
        config, device = self._marian.config, self._marian.device
        assert config.pad_token_id is not None
        limit = min(params.max_length, config.max_position_embeddings - 1)
        beams = params.beam_size if params.method == "beam" else 1
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for rows in sorted_batches(np.array([len(source) for source in sources]), params.batch_size):
            clipped = [clip(sources[row], config.max_position_embeddings) for row in rows]
            batch = torch.from_numpy(padded(clipped, config.pad_token_id)).to(device)
            answers = self._marian.generate(
                input_ids=batch,
                attention_mask=batch != config.pad_token_id,
                num_beams=beams,
                do_sample=False,
                max_new_tokens=limit,
                early_stopping=params.stopping == "first" and beams > 1,
            )
            for row, ids in zip(rows, answers[:, 1:].tolist(), strict=True):
                ids = ids[: ids.index(config.eos_token_id)] if config.eos_token_id in ids else ids
                found[row] = [Hypothesis(ids, 0.0, 0.0, finished=len(ids) < limit)]
        return found


def _renamed(name: str) -> str:
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    return name
