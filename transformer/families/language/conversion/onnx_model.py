"""A language model as an ONNX graph: `ids` (B, S), `places` (M,) -> `states` (B, S, C), `log_probabilities` (M, V)."""

import numpy as np
import onnx

from transformer.conversion.onnx_graph import FLOAT, INTEGER, Graph
from transformer.conversion.onnx_layers import array, counted, embedded, encoded, normed
from transformer.families.language.nn.model import LanguageTransformer, OutputTransform


def language_graph(model: LanguageTransformer) -> onnx.ModelProto:
    """The whole model; places count in the flattened ids (B * S,)."""
    graph = Graph("language_model")
    ids, places = graph.input("ids", INTEGER, ["B", "S"]), graph.input("places", INTEGER, ["M"])
    real = graph.add("Not", graph.add("Equal", ids, graph.constant(model.config.pad_id, np.int64)))
    positions = counted(graph, ids)
    states = embedded(graph, model.embedding, ids, positions)
    states = encoded(graph, model.encoder, states, real, positions, causal=model.causal)
    width = model.d_model
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
