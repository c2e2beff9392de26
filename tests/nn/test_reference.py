"""Attention, layers and models, compared with torch.nn's modules with copied weights, in float64."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.builders import LAYERS, seq2seq
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.nn.attention import KeyValue, MultiHeadAttention, scaled_dot_product_attention
from transformer.nn.layers import DecoderLayer, EncoderLayer, Residual, count_parameters

C, H = LAYERS["d_model"], LAYERS["heads"]


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())


def torch_layer(ours: EncoderLayer | DecoderLayer, norm: str, activation: str) -> Any:
    """PyTorch's layer with these weights, in training mode: in evaluation it uses its own fast path."""
    decodes = isinstance(ours, DecoderLayer)
    kind = nn.TransformerDecoderLayer if decodes else nn.TransformerEncoderLayer
    settings: Any = {"batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    theirs: Any = kind(C, H, LAYERS["d_ff"], 0.0, activation, **settings).train()
    copy_attention(theirs.self_attn, ours.attention)
    if isinstance(ours, DecoderLayer):
        copy_attention(theirs.multihead_attn, ours.source_attention)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    residuals = [each for each in ours.children() if isinstance(each, Residual)]
    for number, residual in enumerate(residuals, start=1):
        theirs.get_submodule(f"norm{number}").load_state_dict(residual.norm.state_dict())
    return theirs


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_whole_model_agrees_with_torch(norm: str, activation: str) -> None:
    model = seq2seq(norm=norm, activation=activation)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):  # initial norms are all 1 and 0, so a swapped pair would go unnoticed
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    source_ids = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 3, 0, 0]])
    target_ids = torch.tensor([[2, 4, 6], [2, 9, 5]])
    padded, later = source_ids == 0, torch.ones(3, 3).triu(diagonal=1).bool()
    source, target = model.source_embedding(source_ids), model.target_embedding(target_ids)
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        source = torch_layer(layer, norm, activation)(source, src_key_padding_mask=padded)
    source = model.encoder.norm(source)
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        theirs = torch_layer(layer, norm, activation)
        target = theirs(target, source, tgt_mask=later, memory_key_padding_mask=padded)
    torch.testing.assert_close(model(source_ids, target_ids), model.decoder.norm(target), rtol=0, atol=1e-10)


def test_attention_follows_the_equation() -> None:
    query, key, value = (torch.randn(2, 3, length, 4, dtype=torch.float64) for length in (4, 6, 6))
    seen = (torch.arange(6) < torch.tensor([[4], [6]]))[:, None, None]
    weights = (query @ key.mT / 4**0.5).masked_fill(~seen, float("-inf")).softmax(dim=-1)
    found = scaled_dot_product_attention(query, KeyValue(key, value), seen)
    torch.testing.assert_close(found, weights @ value, rtol=0, atol=1e-10)


def test_the_seed_model_has_its_published_size() -> None:
    sizes = LAYERS | {"d_model": 256, "heads": 8, "d_ff": 512, "max_length": 100}
    model = Seq2SeqTransformer(
        Seq2SeqConfig(
            model=Seq2SeqParams(**sizes, encoder_layers=3, decoder_layers=3, tie_embeddings="none"),
            source_size=7853,
            target_size=5893,
            source_pad_id=0,
            target_pad_id=0,
        )
    )
    assert count_parameters(model) == 9_038_341
