"""A language model as an ONNX graph: `ids` (B, S), `places` (M,) -> `states` (B, S, C), `log_probabilities` (M, V).

A discriminator is a graph of its own, `ids` (B, S) -> `states` (B, S, C), `replaced` (B, S); the other one then is its
generator.
"""

import numpy as np
import onnx

from transformer.conversion.onnx_graph import FLOAT, INTEGER, Graph
from transformer.conversion.onnx_layers import array, counted, embedded, encoded, normed
from transformer.families.language.nn.model import LanguageTransformer, OutputTransform
from transformer.families.language.nn.replaced import Generator, ReplacedTransformer


def language_graph(model: LanguageTransformer | Generator) -> onnx.ModelProto:
    """What predicts tokens; places count in the flattened ids (B * S,)."""
    graph = Graph("language_model")
    ids, places = graph.input("ids", INTEGER, ["B", "S"]), graph.input("places", INTEGER, ["M"])
    states, width = _states(graph, model, ids), model.config.model.d_model
    if isinstance(model, Generator):
        width = model.narrow.out_features
    chosen = graph.add("Gather", graph.add("Reshape", states, graph.integers(-1, width)), places, axis=0)
    if isinstance(model.transform, OutputTransform):
        linear = model.transform.linear
        chosen = graph.add("Gelu", graph.linear(chosen, array(linear.weight), array(linear.bias)))
        chosen = normed(graph, model.transform.norm, chosen)
    bias = None if model.output.bias is None else array(model.output.bias)
    logits = graph.linear(chosen, array(model.output.weight), bias)
    graph.output("states", states, FLOAT, ["B", "S", width])
    graph.output("log_probabilities", graph.add("LogSoftmax", logits, axis=-1), FLOAT, ["M", model.config.entries])
    return graph.model()


def discriminator_graph(model: ReplacedTransformer) -> onnx.ModelProto:
    """The discriminator: its states, and the probability of each token that it was replaced."""
    graph = Graph("discriminator")
    ids = graph.input("ids", INTEGER, ["B", "S"])
    states = _states(graph, model, ids)
    linear, output = model.detection.linear, model.detection.output
    inner = graph.add("Gelu", graph.linear(states, array(linear.weight), array(linear.bias)))
    logits = graph.linear(inner, array(output.weight), array(output.bias))
    replaced = graph.add("Sigmoid", graph.add("Squeeze", logits, graph.integers(2)))
    graph.output("states", states, FLOAT, ["B", "S", model.d_model])
    graph.output("replaced", replaced, FLOAT, ["B", "S"])
    return graph.model()


def _states(graph: Graph, model: LanguageTransformer | Generator | ReplacedTransformer, ids: str) -> str:
    """The states (B, S, C) of ids (B, S)."""
    real = graph.add("Not", graph.add("Equal", ids, graph.constant(model.config.pad_id, np.int64)))
    positions = counted(graph, ids)
    states = embedded(graph, model.embedding, ids, positions)
    if isinstance(model, Generator):
        states = graph.linear(states, array(model.narrow.weight), array(model.narrow.bias))
    causal = isinstance(model, LanguageTransformer) and model.causal
    return encoded(graph, model.encoder, states, real, positions, causal=causal)
