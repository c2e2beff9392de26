"""Small models and parameters for tests."""

from typing import Any

import torch
from torch import nn

from transformer.core.validation import Runtime
from transformer.families.classifier.interface import (
    ClassifierConfig,
    ClassifierParams,
    NgramParams,
    RecurrentClassifierParams,
)
from transformer.families.classifier.network import RecurrentClassifier, TransformerClassifier
from transformer.families.language.interface import LanguageConfig, LanguageParams, ReformerParams, TransformerXLParams
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.reformer import Reformer
from transformer.families.language.transformer_xl import TransformerXL
from transformer.families.seq2seq.interface import RecurrentParams, Seq2SeqConfig, Seq2SeqParams
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.recurrent import RecurrentSeq2Seq

LAYERS: dict[str, Any] = {
    "kind": "transformer",
    "d_model": 16,
    "heads": 4,
    "head_dim": None,
    "d_ff": 24,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "activation": "relu",
    "norm": "post",
    "positions": "learned",
    "max_length": 32,
    "embedding_init": "xavier",
    "residual_init": "xavier",
    "scale_embeddings": True,
}
RECURRENT: dict[str, Any] = {"kind": "recurrent", "embedding": 10, "hidden": 12, "dropout": 0.0, "max_length": 32}

NGRAMS = NgramParams(
    kind="ngrams", ngrams=3, features=1000, strength=1.0, vectors=0, vector_ngrams=1000, vector_strength=1.0
)


TRAIN: dict[str, Any] = {
    "seed": 1,
    "epochs": 3,
    "patience": None,
    "batch_size": 4,
    "batch_unit": "rows",
    "accumulation": 1,
    "shards": 1,
    "optimizer": "adam",
    "betas": [0.9, 0.999],
    "epsilon": 1e-8,
    "weight_decay": 0.0,
    "learning_rate": 0.1,
    "schedule": "constant",
    "warmup": 0,
    "label_smoothing": 0.0,
    "r_drop": 0.0,
    "word_dropout": 0.0,
    "averaging": "none",
    "average_epochs": 2,
    "ema_decay": 0.9,
    "monitor": "loss",
    "clip": None,
    "non_finite": "stop",
    "out_of_memory": "halve",
}

SEQ2SEQ_TRAIN: dict[str, Any] = {
    "too_long": "cut",
    "bidirectional_epochs": 0,
    "simcut": 0.0,
    "cutoff": 0.1,
    "consistency_from": 1,
}
"""What a translation task's training has besides `TRAIN`."""


def seq2seq(**changes: Any) -> Seq2SeqTransformer:
    """A small encoder-decoder in float64, ready to predict; padding is 0 on both sides."""
    torch.manual_seed(0)
    params = Seq2SeqParams(**({**LAYERS, "encoder_layers": 2, "decoder_layers": 2, "tie_embeddings": "none"} | changes))
    target = 40 if params.tie_embeddings == "all" else 30
    config = Seq2SeqConfig(model=params, source_size=40, target_size=target, source_pad_id=0, target_pad_id=0)
    return Seq2SeqTransformer(config).double().eval()


def classifier(**changes: Any) -> TransformerClassifier:
    """A small classifier in float64, ready to predict; padding is 0."""
    torch.manual_seed(0)
    params = ClassifierParams(**({**LAYERS, "layers": 2, "pooling": "first"} | changes))
    return TransformerClassifier(ClassifierConfig(model=params, size=40, pad_id=0, classes=2)).double().eval()


def recurrent_seq2seq(**changes: Any) -> RecurrentSeq2Seq:
    """A small recurrent encoder-decoder in float64, ready to predict; padding is 0 on both sides."""
    torch.manual_seed(0)
    own: dict[str, Any] = {"cell": "gru", "attention": "bahdanau", "local_window": None, "teacher_forcing": 1.0}
    own |= {"encoder_layers": 1, "decoder_layers": 1}
    own["bidirectional"] = changes.get("attention") not in ("luong_dot", "luong_scaled_dot")
    model = RecurrentParams(**(RECURRENT | own | changes))
    config = Seq2SeqConfig(model=model, source_size=40, target_size=30, source_pad_id=0, target_pad_id=0)
    return RecurrentSeq2Seq(config).double().eval()


def recurrent_classifier(**changes: Any) -> RecurrentClassifier:
    """A small recurrent classifier in float64, ready to predict; padding is 0."""
    torch.manual_seed(0)
    own: dict[str, Any] = {"cell": "lstm", "layers": 1, "bidirectional": True, "pooling": "last"}
    model = RecurrentClassifierParams(**(RECURRENT | own | changes))
    return RecurrentClassifier(ClassifierConfig(model=model, size=40, pad_id=0, classes=2)).double().eval()


def language(objective: str = "masked", **changes: Any) -> LanguageTransformer:
    """A small language model in float64, ready to predict; padding is 0, the mask 4 of 30 tokens."""
    torch.manual_seed(0)
    own = {"objective": objective, "layers": 2, "output": "plain"}
    params = LanguageParams(**({**LAYERS, **own} | changes))
    config = LanguageConfig(model=params, size=30, pad_id=0, mask_id=4, vocabulary_sha256="0" * 64)
    return LanguageTransformer(config).double().eval()


def transformer_xl(**changes: Any) -> TransformerXL:
    """A small Transformer-XL in float64, ready to predict; segments of 5 tokens remember 7 states."""
    torch.manual_seed(0)
    own = {"kind": "transformer_xl", "objective": "causal", "layers": 2, "output": "plain", "max_length": 5}
    own |= {"memory_length": 7, "same_length": False, "clamp_length": None}
    layers = {name: value for name, value in LAYERS.items() if name != "positions"}
    config = LanguageConfig(
        model=TransformerXLParams(**(layers | own | changes)), size=30, pad_id=0, mask_id=4, vocabulary_sha256="0" * 64
    )
    model = TransformerXL(config).double().eval()
    for name, bias in model.named_parameters():
        if name.endswith(("content_bias", "distance_bias")):
            nn.init.normal_(bias)
    return model


def reformer(**changes: Any) -> Reformer:
    """A small Reformer in float64, ready to predict; 4 buckets, chunks of 4 tokens."""
    torch.manual_seed(0)
    own = {"kind": "reformer", "objective": "causal", "layers": 2, "output": "plain", "norm": "pre", "buckets": 4}
    own |= {"hash_rounds": 2, "chunk_length": 4, "hash_seed": 3, "feed_forward_chunk": None}
    config = LanguageConfig(
        model=ReformerParams(**(LAYERS | own | changes)), size=30, pad_id=0, mask_id=4, vocabulary_sha256="0" * 64
    )
    return Reformer(config).double().eval()


def small_runtime(**changes: Any) -> Runtime:
    """Nothing in other processes, nothing shown or recorded."""
    given: dict[str, Any] = {"workers": 0, "trainers": 1, "engine": "processes", "address": None, "retries": 0}
    given |= {"log_every": 1, "progress": False, "save_every": 0, "tracking": False, "tracking_seconds": 60}
    return Runtime(**given | changes)
