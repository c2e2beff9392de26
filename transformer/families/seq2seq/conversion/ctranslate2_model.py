"""Export of the encoder-decoder to CTranslate2."""

from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerDecoderSpec, TransformerSpec

from transformer.conversion.ctranslate2_layers import (
    encoder_spec,
    entries,
    fill_embedding,
    fill_layer,
    fill_linear,
    fill_norm,
    save,
    stack_options,
)
from transformer.conversion.onnx_layers import array
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.seq2seq.conversion.onnx_model import decoder_layers
from transformer.families.seq2seq.nn.config import Seq2SeqParams
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer

_NEVER = -1e4
"""Output bias of padding and begin token, which our distribution excludes."""


def write_ctranslate2(
    folder: Path, model: Seq2SeqTransformer, source: Vocabulary, target: Vocabulary, *, int8: bool
) -> None:
    """Write the model to `folder`, which must not exist. Its inputs begin and end with our special tokens."""
    params = model.config.model
    assert isinstance(params, Seq2SeqParams)
    decoder = TransformerDecoderSpec(params.decoder_layers, **stack_options(params))
    encoder = encoder_spec(params.encoder_layers, params, model.source_embedding, model.encoder)
    spec = TransformerSpec(encoder, decoder)
    spec.config.decoder_start_token = target.specials.begin
    spec.register_source_vocabulary(entries(source))
    spec.register_target_vocabulary(entries(target))
    fill_embedding(decoder, decoder.embeddings, model.target_embedding, params)
    for theirs, ours in zip(decoder.layer, decoder_layers(model), strict=True):
        fill_layer(theirs, ours)
        attention = ours.source_attention
        fill_linear(theirs.attention.linear[0], attention.query)
        fill_linear(theirs.attention.linear[1], attention.key, attention.value)
        fill_linear(theirs.attention.linear[2], attention.output)
        fill_norm(theirs.attention.layer_norm, ours.source_residual.norm)
    if params.norm == "pre":
        fill_norm(decoder.layer_norm, model.decoder.norm)
    bias = array(model.output.bias).copy()
    bias[[target.pad_id, target.begin_id]] = _NEVER
    decoder.projection.weight, decoder.projection.bias = array(model.output.weight), bias.astype(np.float32)
    save(spec, folder, target, int8=int8)
