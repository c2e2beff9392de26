"""Small models and parameters for tests."""

from typing import Any

import torch

from transformer.nn.classifier.config import ClassifierConfig, ClassifierParams
from transformer.nn.classifier.model import TransformerClassifier
from transformer.nn.seq2seq.config import Seq2SeqConfig, Seq2SeqParams
from transformer.nn.seq2seq.model import Seq2SeqTransformer

LAYERS: dict[str, Any] = {
    "kind": "transformer",
    "d_model": 16,
    "heads": 4,
    "d_ff": 24,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "activation": "relu",
    "norm": "post",
    "positions": "learned",
    "max_length": 32,
    "embedding_init": "xavier",
    "scale_embeddings": True,
}


def seq2seq(**changes: Any) -> Seq2SeqTransformer:
    """A small encoder-decoder in float64, ready to predict; padding is 0 on both sides."""
    torch.manual_seed(0)
    params = Seq2SeqParams(**({**LAYERS, "encoder_layers": 2, "decoder_layers": 2} | changes))
    config = Seq2SeqConfig(model=params, source_size=40, target_size=30, source_pad_id=0, target_pad_id=0)
    return Seq2SeqTransformer(config).double().eval()


def classifier(**changes: Any) -> TransformerClassifier:
    """A small classifier in float64, ready to predict; padding is 0."""
    torch.manual_seed(0)
    params = ClassifierParams(**({**LAYERS, "layers": 2, "pooling": "first"} | changes))
    return TransformerClassifier(ClassifierConfig(model=params, size=40, pad_id=0, classes=2)).double().eval()
