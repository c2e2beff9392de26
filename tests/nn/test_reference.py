"""Attention, layers and models, compared with torch.nn's modules with copied weights, in float64."""

import pytest
import torch
from torch import Tensor, nn

from tests.builders import LAYERS, seq2seq
from transformer.families.seq2seq.interface import Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.nn.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.nn.config import TransformerParams
from transformer.nn.layers import DecoderLayer, EncoderLayer, count_parameters
from transformer.nn.masks import padding_mask

C, H = LAYERS["d_model"], LAYERS["heads"]
variants = pytest.mark.parametrize(
    ("norm", "activation"), [("post", "relu"), ("post", "gelu"), ("pre", "relu"), ("pre", "gelu")]
)


def states(batch: int, length: int) -> Tensor:
    return torch.randn(batch, length, C, dtype=torch.float64, generator=torch.Generator().manual_seed(length))


def key_mask(batch: int, length: int) -> Tensor:
    """The last row attends to all keys, each earlier row to one less."""
    return torch.arange(length)[None] < (length - torch.arange(batch).flip(0))[:, None]


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())


def torch_encoder_layer(ours: EncoderLayer, norm: str, activation: str) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(
        C, H, LAYERS["d_ff"], 0.0, activation, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    ).train()  # in evaluation it uses its own fast path
    copy_attention(theirs.self_attn, ours.attention)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    theirs.norm1.load_state_dict(ours.attention_residual.norm.state_dict())
    theirs.norm2.load_state_dict(ours.feed_forward_residual.norm.state_dict())
    return theirs


def torch_decoder_layer(ours: DecoderLayer, norm: str, activation: str) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(
        C, H, LAYERS["d_ff"], 0.0, activation, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    copy_attention(theirs.self_attn, ours.attention)
    copy_attention(theirs.multihead_attn, ours.source_attention)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    theirs.norm1.load_state_dict(ours.attention_residual.norm.state_dict())
    theirs.norm2.load_state_dict(ours.source_residual.norm.state_dict())
    theirs.norm3.load_state_dict(ours.feed_forward_residual.norm.state_dict())
    return theirs


def params(norm: str, activation: str) -> TransformerParams:
    return TransformerParams(**(LAYERS | {"norm": norm, "activation": activation}))


def causal(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def randomise_norms(module: nn.Module) -> None:
    """Initial norms are all 1 and 0, so a swapped pair would go unnoticed."""
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)


@variants
def test_whole_model_agrees_with_torch(norm: str, activation: str) -> None:
    model = seq2seq(norm=norm, activation=activation)
    randomise_norms(model)
    source_ids = torch.tensor([[2, 9, 8, 7, 3], [2, 5, 3, 0, 0]])
    target_ids = torch.tensor([[2, 4, 6], [2, 9, 5]])
    mask = padding_mask(source_ids, 0)
    padded = ~mask[:, 0, 0]
    source = model.source_embedding(source_ids)
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        source = torch_encoder_layer(layer, norm, activation)(source, src_key_padding_mask=padded)
    source = model.encoder.norm(source)
    target = model.target_embedding(target_ids)
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        theirs = torch_decoder_layer(layer, norm, activation)
        target = theirs(target, source, tgt_mask=~causal(3), memory_key_padding_mask=padded)
    torch.testing.assert_close(model(source_ids, target_ids), model.decoder.norm(target), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dropout", [0.0, 1e-12])
def test_both_attention_kernels_follow_the_equation(dropout: float) -> None:
    """A vanishing dropout uses the path of plain products, which must give the same result."""
    attention = MultiHeadAttention(C, H, head_dim=C // H, dropout=0.0).double()
    memory, keys = attention.project(states(3, 6)), key_mask(3, 6)[:, None, None]
    query = attention.project(states(3, 4)).key
    weights = (query @ memory.key.mT / (C / H) ** 0.5).masked_fill(~keys, float("-inf")).softmax(dim=-1)
    actual = scaled_dot_product_attention(query, memory, keys, dropout=dropout)
    torch.testing.assert_close(actual, weights @ memory.value, rtol=0, atol=1e-10)


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
