"""The same models in the `transformers` library, and their weights: pairs of our tensor and theirs."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    ReformerConfig,
    ReformerModel,
    XLNetConfig,
    XLNetModel,
)
from transformers.pytorch_utils import Conv1D

from transformer.families.language.interface import ReformerParams, TransformerXLParams
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.reformer import Reformer
from transformer.families.language.transformer_xl import TransformerXL
from transformer.nn.positions import sinusoidal_table

Pairs = Iterator[tuple[Tensor, Tensor]]


def bert(ours: LanguageTransformer) -> Any:
    """A BERT of the same sizes, without its norm of the embeddings; `layer_norm_eps` is PyTorch's."""
    params = ours.config.model
    sizes: dict[str, Any] = {
        "vocab_size": ours.config.entries,
        "hidden_size": params.d_model,
        "num_hidden_layers": params.layers,
        "num_attention_heads": params.heads,
        "intermediate_size": params.d_ff,
        "max_position_embeddings": params.max_length,
        "pad_token_id": ours.config.pad_id,
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu",
    }
    model: Any = BertForMaskedLM(BertConfig(**sizes))
    model.eval()
    model.bert.embeddings.LayerNorm = nn.Identity()
    with torch.no_grad():  # the type of every token: one vector, which our positions contain
        model.bert.embeddings.token_type_embeddings.weight.zero_()
    return model


BERT_LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}


def bert_weights(ours: Any, theirs: Any) -> Pairs:
    embeddings, head = theirs.bert.embeddings, theirs.cls.predictions
    yield ours.embedding.tokens.weight, embeddings.word_embeddings.weight
    yield ours.embedding.positions.table.weight, embeddings.position_embeddings.weight
    for own, layer in zip(ours.encoder.layers, theirs.bert.encoder.layer, strict=True):
        for name, their_name in BERT_LAYER.items():
            yield from _both(own.get_submodule(name), layer.get_submodule(their_name))
    yield from _both(ours.transform.linear, head.transform.dense)
    yield from _both(ours.transform.norm, head.transform.LayerNorm)
    yield ours.output.bias, head.decoder.bias


def gpt2(ours: LanguageTransformer) -> Any:
    """A GPT-2 of the same sizes."""
    params = ours.config.model
    sizes: dict[str, Any] = {
        "vocab_size": ours.config.entries,
        "n_embd": params.d_model,
        "n_layer": params.layers,
        "n_head": params.heads,
        "n_inner": params.d_ff,
        "n_positions": params.max_length,
    }
    model: Any = GPT2LMHeadModel(GPT2Config(**sizes))
    return model.eval()


def gpt2_weights(ours: Any, theirs: Any) -> Pairs:
    width = ours.d_model
    yield ours.embedding.tokens.weight, theirs.transformer.wte.weight
    yield ours.embedding.positions.table.weight, theirs.transformer.wpe.weight
    for own, layer in zip(ours.encoder.layers, theirs.transformer.h, strict=True):
        yield from _both(own.attention_residual.norm, layer.ln_1)
        for number, part in enumerate((own.attention.query, own.attention.key, own.attention.value)):
            columns = slice(number * width, (number + 1) * width)
            yield part.weight, layer.attn.c_attn.weight[:, columns].t()
            yield part.bias, layer.attn.c_attn.bias[columns]
        yield from _both(own.attention.output, layer.attn.c_proj)
        yield from _both(own.feed_forward_residual.norm, layer.ln_2)
        yield from _both(own.feed_forward.inner, layer.mlp.c_fc)
        yield from _both(own.feed_forward.outer, layer.mlp.c_proj)
    yield from _both(ours.encoder.norm, theirs.transformer.ln_f)


def _both(ours: nn.Module, theirs: Any) -> Pairs:
    """GPT-2's linear layers are convolutions of width 1, whose weights are transposed."""
    yield ours.get_parameter("weight"), theirs.weight.t() if isinstance(theirs, Conv1D) else theirs.weight
    yield ours.get_parameter("bias"), theirs.bias


def xlnet(ours: TransformerXL) -> Any:
    """An XLNet with the attention of Transformer-XL, of the same sizes and with the same weights.

    Its sinusoids are ours in float64, with the sines first; it computes them in float32. Its projections have no bias.
    """
    params = ours.config.model
    assert isinstance(params, TransformerXLParams)
    config = XLNetConfig(
        vocab_size=30, d_model=params.d_model, n_layer=params.layers, n_head=params.heads, d_inner=params.d_ff,
        ff_activation="relu", attn_type="uni", mem_len=params.memory_length, same_length=params.same_length,
        clamp_len=-1 if params.clamp_length is None else params.clamp_length, layer_norm_eps=1e-5, dropout=0.0,
    )  # fmt: skip
    model: Any = XLNetModel(config).double().eval()
    order = [*range(0, params.d_model, 2), *range(1, params.d_model, 2)]

    def sinusoids(queries: int, keys: int, bsz: int, device: torch.device) -> Tensor:
        distances = torch.arange(keys, -1, -1).clamp(max=params.clamp_length or keys)
        return sinusoidal_table(keys + 1, params.d_model).double()[distances][:, None, order].expand(-1, bsz, -1)

    model.relative_positional_encoding = sinusoids
    with torch.no_grad():
        model.word_embedding.weight.copy_(ours.embedding.tokens.weight * ours.embedding.scale)
        layer: Any
        for layer, theirs in zip(ours.encoder.layers, model.layer, strict=True):
            for name, weights in zip("qkvo", ("query", "key", "value", "output"), strict=True):
                own = layer.attention.get_submodule(weights)
                own.bias.zero_()
                their = getattr(theirs.rel_attn, name)
                their.copy_((own.weight if name == "o" else own.weight.t()).reshape(their.shape))
            theirs.rel_attn.r.copy_(layer.attention.distance.weight.t()[order].reshape(theirs.rel_attn.r.shape))
            theirs.rel_attn.r_w_bias.copy_(layer.attention.content_bias.view(params.heads, -1))
            theirs.rel_attn.r_r_bias.copy_(layer.attention.distance_bias.view(params.heads, -1))
            for their, own in (
                (theirs.rel_attn.layer_norm, layer.attention_residual.norm),
                (theirs.ff.layer_norm, layer.feed_forward_residual.norm),
                (theirs.ff.layer_1, layer.feed_forward.inner),
                (theirs.ff.layer_2, layer.feed_forward.outer),
            ):
                their.load_state_dict(own.state_dict())
    return model


def stock_reformer(ours: Reformer) -> Any:
    """A Reformer of the same sizes and with the same weights, whose output is both streams, (B, T, 2C).

    Its first chunk of each round looks back at another round's last one, which ours does not: here all of it is later.
    """
    params = ours.config.model
    assert isinstance(params, ReformerParams)
    chunk = params.chunk_length
    config = ReformerConfig(
        attn_layers=["lsh"] * params.layers, num_buckets=params.buckets, num_hashes=params.hash_rounds,
        hash_seed=params.hash_seed, lsh_attn_chunk_length=chunk, lsh_num_chunks_after=0, is_decoder=True,
        hidden_size=params.d_model, num_attention_heads=params.heads, attention_head_size=params.dimension_of_head,
        feed_forward_size=params.d_ff, hidden_act="relu", layer_norm_eps=1e-5, axial_pos_embds=False,
        max_position_embeddings=params.max_length, vocab_size=30, hidden_dropout_prob=0.0,
        lsh_attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model: Any = ReformerModel(config).double().eval()
    model.encoder.layer_norm = nn.Identity()
    embeddings = model.embeddings
    pairs = [(embeddings.word_embeddings.weight, ours.embedding.tokens.weight * ours.embedding.scale)]
    pairs += [(embeddings.position_embeddings.embedding.weight, ours.embedding.positions.get_parameter("table.weight"))]
    own: Any
    for own, theirs in zip(ours.encoder.layers, model.encoder.layers, strict=True):
        attention, feed_forward = own.attention.attention, own.feed_forward.feed_forward
        lsh = theirs.attention.self_attention
        look = lsh._look_adjacent

        def backwards(vectors: Tensor, before: int, after: int, look: Any = look) -> Tensor:
            found: Tensor = look(vectors, before, after)
            if not found.is_floating_point():
                found[:, :, :: vectors.shape[2] // params.hash_rounds, :chunk] = 10**9
            return found

        lsh._look_adjacent = backwards
        for part in (attention.query, attention.value, attention.output):
            nn.init.zeros_(part.bias)
        pairs += [(lsh.query_key.weight, attention.query.weight), (lsh.value.weight, attention.value.weight)]
        pairs += [(theirs.attention.output.dense.weight, attention.output.weight)]
        for their, part in (
            (theirs.attention.layer_norm, own.attention.norm),
            (theirs.feed_forward.layer_norm, own.feed_forward.norm),
            (theirs.feed_forward.dense.dense, feed_forward.inner),
            (theirs.feed_forward.output.dense, feed_forward.outer),
        ):
            pairs += [(their.weight, part.weight), (their.bias, part.bias)]
    with torch.no_grad():
        for their, weight in pairs:
            their.copy_(weight)
    return model
