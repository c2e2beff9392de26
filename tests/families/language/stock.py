"""The same models in the `transformers` library, and their weights: pairs of our tensor and theirs."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

from transformer.families.language.network import LanguageTransformer

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
