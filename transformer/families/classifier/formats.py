"""Classifiers in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from ctranslate2.specs import TransformerEncoderModelSpec
from torch import Tensor

from transformer.core.files import atomic_write
from transformer.data.vocabulary import Vocabulary, clip
from transformer.families.classifier.engines import HEAD
from transformer.families.classifier.interface import ClassifierModel, ClassifierParams
from transformer.families.classifier.network import (
    AttentionPooling,
    RecurrentClassifier,
    TransformerClassifier,
)
from transformer.families.classifier.torch_classifier import TorchClassifier
from transformer.inference.ctranslate2_layers import array, encoder_spec, entries, save
from transformer.inference.onnx_export import Input, Tensors, exported
from transformer.nn.recurrent import Cell, GRUCell, LSTMCell

_HEAD = '''"""Classifies with {library} alone: pip install {packages}, then python example.py in this folder."""

import numpy as np
import {module}

# {text}
# as the ids of vocab/text/tokenizer.json, which the library tokenizers opens; pretokenizer.json says how text is split
# before.
ids = {ids}
classes = {classes}
'''
_ONNX = """
session = onnxruntime.InferenceSession("model/classifier.onnx")
probabilities = session.run(["probabilities"], {{"ids": np.array([ids])}})[0][0]
print(classes[probabilities.argmax()], probabilities.max())
"""
_CTRANSLATE2 = """
head = np.load("model/head.npz")
states = np.asarray(ctranslate2.Encoder("model").forward_batch([{put_before} + ids]).last_hidden_state)[0]
state = {pooled}
logits = head["weight"] @ state + head["bias"]
probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
print(classes[probabilities.argmax()], probabilities.max())
"""
_POOLED = {
    "mean": "states.mean(axis=0)",
    "max": "states.max(axis=0)",
    "first": "states[0]",
    "cls": "states[0]",
    "attention": """(lambda scores: np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())(
    np.tanh(states @ head["hidden_weight"].T + head["hidden_bias"]) @ head["score"]
) @ states""",
}


def onnx_example(text: str, ids: Sequence[int], classifier: TorchClassifier) -> str:
    """Return code that classifies with ONNX Runtime."""
    return (_HEAD + _ONNX).format(
        library="ONNX Runtime", packages="onnxruntime numpy", module="onnxruntime", **_values(text, ids, classifier)
    )


def ctranslate2_example(text: str, ids: Sequence[int], classifier: TorchClassifier) -> str:
    """Return code that classifies with CTranslate2's encoder and NumPy."""
    config, pooling = classifier.model.config, classifier.model.params.pooling
    return (_HEAD + _CTRANSLATE2).format(
        library="CTranslate2",
        packages="ctranslate2 numpy",
        module="ctranslate2",
        put_before=[config.size] if pooling == "cls" else [],
        pooled=_POOLED[pooling],
        **_values(text, ids, classifier),
    )


def _values(text: str, ids: Sequence[int], classifier: TorchClassifier) -> dict[str, object]:
    return {
        "text": json.dumps(text[:100], ensure_ascii=False),
        "ids": clip(np.array(ids), classifier.scorer.positions).tolist(),
        "classes": json.dumps([*classifier.classes], ensure_ascii=False),
    }


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


def classifier_graph(model: ClassifierModel) -> onnx.ModelProto:
    """Return the model `ids` (B, S) -> `logits` and `probabilities` (B, K) of a classifier."""
    logits = _recurrent_logits(model) if isinstance(model, RecurrentClassifier) else model

    def compute(given: Tensors) -> Tensors:
        found = logits(given["ids"])
        return {"logits": found, "probabilities": found.softmax(dim=-1)}

    return exported(model, compute, {"ids": Input(torch.int64, ["B", "S"])}, {"B": 2, "S": 2})


def _recurrent_logits(model: RecurrentClassifier) -> Callable[[Tensor], Tensor]:
    """Return the model as a function of ids (B, S), with ONNX's own recurrent operators, which skip padding."""
    layers = [_operator([*layer.children()]) for layer in model.encoder.layers]  # type: ignore[list-item]

    def logits(ids: Tensor) -> Tensor:
        real = ids != model.config.pad_id
        states, lengths = model.embedding(ids), real.sum(dim=1, dtype=torch.int32)
        for layer in layers:
            states, final = layer(states, lengths)
        found: Tensor = model.output(model.pool(states, final, real))
        return found

    return logits


# Order of ONNX's gates among ours, which are torch's: LSTM i f g o -> i o f c, GRU r z n -> z r h.
_GATES = {LSTMCell: [0, 3, 1, 2], GRUCell: [1, 0, 2]}


def _operator(cells: Sequence[Cell]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return a layer as a function: states (B, S, I), lengths (B,) -> all states (B, S, C'), the last ones (B, C').

    cells: forwards, and backwards if it reads in both directions.
    """
    kind, gates, width = type(cells[0]), cells[0].gates, cells[0].width

    def stacked(*names: str) -> Tensor:
        parts = [torch.cat([cell.get_parameter(name) for name in names]).detach() for cell in cells]
        ordered = [part.view(len(names), gates, width, -1)[:, _GATES[kind]] for part in parts]
        return torch.stack(ordered).view(len(cells), *parts[0].shape)

    weights = [stacked("input.weight"), stacked("hidden.weight"), stacked("input.bias", "hidden.bias")]
    directions = "bidirectional" if len(cells) == 2 else "forward"
    options: dict[str, Any] = {"hidden_size": width, "direction": directions}
    if kind is GRUCell:
        options["linear_before_reset"] = 1

    def run(states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        rows, steps, _ = states.shape
        outputs, last = torch.onnx.ops.symbolic_multi_out(
            "GRU" if kind is GRUCell else "LSTM",
            [states.transpose(0, 1), *weights, lengths],
            options,
            dtypes=[states.dtype] * 2,
            shapes=[(steps, len(cells), rows, width), (len(cells), rows, width)],
        )
        return outputs.permute(2, 0, 1, 3).flatten(2), last.transpose(0, 1).flatten(1)

    return run
