"""Export of a classifier as a CTranslate2 encoder, with its head as NumPy arrays."""

from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerEncoderModelSpec

from transformer.conversion.ctranslate2_layers import encoder_spec, entries, save
from transformer.conversion.onnx_layers import array
from transformer.core.files import atomic_write
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.classifier.conversion.ctranslate2_scorer import HEAD
from transformer.families.classifier.nn.config import ClassifierParams
from transformer.families.classifier.nn.model import TransformerClassifier
from transformer.families.classifier.nn.pooling import AttentionPooling

CLS = "[the first position]"
"""Vocabulary entry of the token prepended for `cls` pooling; never in a vocabulary, since words contain no space."""


def write_ctranslate2(folder: Path, model: TransformerClassifier, vocabulary: Vocabulary, *, int8: bool) -> None:
    """Write the encoder to `folder`, which must not exist, and pooling and output layer to head.npz in it."""
    params = model.config.model
    assert isinstance(params, ClassifierParams)
    encoder = encoder_spec(params.layers, params, model.embedding, model.encoder)
    spec = TransformerEncoderModelSpec(encoder, pooling_layer=False)
    spec.register_vocabulary(entries(vocabulary, *([CLS] if model.extra else [])))
    save(spec, folder, vocabulary, int8=int8)
    head = {"weight": array(model.output.weight), "bias": array(model.output.bias)}
    if isinstance(model.pooling, AttentionPooling):
        hidden = model.pooling.hidden
        head |= {"hidden_weight": array(hidden.weight), "hidden_bias": array(hidden.bias)}
        head |= {"score": array(model.pooling.score.weight)[0]}
    with atomic_write(folder / HEAD) as stream:
        np.savez(stream, allow_pickle=False, pooling=np.array(params.pooling), **head)
