"""Export of a causal language model as a CTranslate2 decoder."""

from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerDecoderModelSpec, TransformerDecoderSpec

from transformer.conversion.ctranslate2_layers import (
    entries,
    fill_embedding,
    fill_layer,
    fill_norm,
    save,
    stack_options,
)
from transformer.conversion.onnx_layers import array
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.language.nn.model import LanguageTransformer


def write_ctranslate2(folder: Path, model: LanguageTransformer, vocabulary: Vocabulary, *, int8: bool) -> None:
    """Write the model to `folder`, which must not exist."""
    params = model.config.model
    decoder = TransformerDecoderSpec(params.layers, with_encoder_attention=False, **stack_options(params))
    fill_embedding(decoder, decoder.embeddings, model.embedding, params)
    for theirs, ours in zip(decoder.layer, model.encoder.layers, strict=True):
        fill_layer(theirs, ours)
    if params.norm == "pre":
        fill_norm(decoder.layer_norm, model.encoder.norm)
    decoder.projection.weight = array(model.output.weight)
    decoder.projection.bias = np.zeros(model.config.entries, dtype=np.float32)
    spec = TransformerDecoderModelSpec(decoder)
    spec.register_vocabulary(entries(vocabulary))
    save(spec, folder, vocabulary, int8=int8)
