"""Classifiers in other formats: CTranslate2 and ONNX, each with an example that uses it alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from ctranslate2.specs import TransformerEncoderModelSpec
from torch import nn

from transformer.core.files import atomic_write
from transformer.data.vocabulary import Vocabulary, clip
from transformer.families.classifier.engines import HEAD
from transformer.families.classifier.interface import ClassifierModel, ClassifierParams
from transformer.families.classifier.network import (
    AttentionPooling,
    MaxPooling,
    MeanPooling,
    RecurrentClassifier,
    TransformerClassifier,
)
from transformer.families.classifier.torch_classifier import TorchClassifier
from transformer.inference.ctranslate2_layers import encoder_spec, entries, save
from transformer.inference.onnx_layers import FLOAT, INTEGER, Graph, array, counted, embedded, encoded
from transformer.nn.recurrent import Cell, GRUCell

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


_LOWEST = np.float32(np.finfo(np.float32).min)


def classifier_graph(model: ClassifierModel) -> onnx.ModelProto:
    """Return the graph of a Transformer or recurrent classifier."""
    graph = Graph("classifier")
    ids = graph.input("ids", INTEGER, ["B", "S"])
    if isinstance(model, TransformerClassifier):
        state = _transformer(graph, model, ids)
    else:
        assert isinstance(model, RecurrentClassifier)
        state = _recurrent(graph, model, ids)
    logits = graph.linear(state, array(model.output.weight), array(model.output.bias))
    classes = model.config.classes
    graph.output("logits", logits, FLOAT, ["B", classes])
    graph.output("probabilities", graph.add("Softmax", logits, axis=-1), FLOAT, ["B", classes])
    return graph.model()


def _real(graph: Graph, ids: str, pad_id: int) -> str:
    """Return a mask (B, S), False at padding."""
    return graph.add("Not", graph.add("Equal", ids, graph.constant(pad_id, np.int64)))


def _transformer(graph: Graph, model: TransformerClassifier, ids: str) -> str:
    if model.extra:  # a [CLS] token in front
        rows = graph.add_many("Concat", [graph.size(ids, 0), graph.integers(1)], 1, axis=0)[0]
        cls = graph.add("Expand", graph.constant(model.config.size, np.int64), rows)
        ids = graph.add_many("Concat", [cls, ids], 1, axis=1)[0]
    real, positions = _real(graph, ids, model.config.pad_id), counted(graph, ids)
    states = encoded(graph, model.encoder, embedded(graph, model.embedding, ids, positions), real, positions)
    return _pooled(graph, model.pooling, states, graph.add("Unsqueeze", real, graph.integers(2)))


def _pooled(graph: Graph, pooling: nn.Module, states: str, real: str) -> str:
    """Pool states (B, S, C) to (B, C). real: (B, S, 1), False at padding."""
    if isinstance(pooling, MeanPooling):
        return _mean(graph, states, real)
    if isinstance(pooling, MaxPooling):
        return _max(graph, states, real)
    if isinstance(pooling, AttentionPooling):
        hidden = graph.add("Tanh", graph.linear(states, array(pooling.hidden.weight), array(pooling.hidden.bias)))
        scores = graph.linear(hidden, array(pooling.score.weight), None)
        weights = graph.add("Softmax", graph.add("Where", real, scores, graph.constant(_LOWEST)), axis=1)
        return graph.add("ReduceSum", graph.add("Mul", weights, states), graph.integers(1), keepdims=0)
    return graph.add("Gather", states, graph.constant(0, np.int64), axis=1)


def _mean(graph: Graph, states: str, real: str) -> str:
    kept = graph.add("Where", real, states, graph.constant(0, np.float32))
    number = graph.add("ReduceSum", graph.add("Cast", real, to=FLOAT), graph.integers(1), keepdims=0)
    return graph.add("Div", graph.add("ReduceSum", kept, graph.integers(1), keepdims=0), number)


def _max(graph: Graph, states: str, real: str) -> str:
    kept = graph.add("Where", real, states, graph.constant(_LOWEST))
    return graph.add("ReduceMax", kept, graph.integers(1), keepdims=0)


def _recurrent(graph: Graph, model: RecurrentClassifier, ids: str) -> str:
    real = _real(graph, ids, model.config.pad_id)
    lengths = graph.add("ReduceSum", graph.add("Cast", real, to=INTEGER), graph.integers(1), keepdims=0)
    lengths = graph.add("Cast", lengths, to=onnx.TensorProto.INT32)
    steps = graph.add(
        "Transpose", graph.add("Gather", graph.constant(array(model.embedding.weight)), ids), perm=[1, 0, 2]
    )
    final = ""
    for layer in model.encoder.layers:
        steps, final = _recurrence(graph, list(layer.children()), steps, lengths)  # type: ignore[arg-type]
    if model.pooling is None:
        return final
    states = graph.add("Transpose", steps, perm=[1, 0, 2])
    return _pooled(graph, model.pooling, states, graph.add("Unsqueeze", real, graph.integers(2)))


# Order of ONNX's gates among ours, which are torch's: LSTM i f g o -> i o f c, GRU r z n -> z r h.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}


def _recurrence(graph: Graph, cells: list[Cell], steps: str, lengths: str) -> tuple[str, str]:
    """Add a recurrent layer: inputs (S, B, I) -> states of all steps (S, B, C') and the final state (B, C')."""
    kind, width = "GRU" if isinstance(cells[0], GRUCell) else "LSTM", cells[0].width

    def stacked(name: str, part: str) -> str:
        rows = [
            array(getattr(getattr(cell, name), part)).reshape(cell.gates, width, -1)[_GATES[kind]] for cell in cells
        ]
        return graph.constant(np.stack([each.reshape(len(each) * width, -1) for each in rows]))

    def biases() -> str:
        parts = [
            np.concatenate([array(linear.bias).reshape(cell.gates, width)[_GATES[kind]].ravel() for linear in linears])
            for cell in cells
            for linears in [(cell.input, cell.hidden)]
        ]
        return graph.constant(np.stack(parts))

    options = {"linear_before_reset": 1} if kind == "GRU" else {}
    direction = "bidirectional" if len(cells) == 2 else "forward"
    given = [steps, stacked("input", "weight"), stacked("hidden", "weight"), biases(), lengths]
    outputs, final = graph.add_many(kind, given, 2, hidden_size=width, direction=direction, **options)
    joined = graph.integers(0, 0, width * len(cells))
    states = graph.add("Reshape", graph.add("Transpose", outputs, perm=[0, 2, 1, 3]), joined)  # (S, D, B, C)
    last = graph.add("Reshape", graph.add("Transpose", final, perm=[1, 0, 2]), graph.integers(0, width * len(cells)))
    return states, last
