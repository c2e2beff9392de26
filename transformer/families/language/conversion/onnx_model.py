"""Export as an ONNX graph: `ids` (B, S), `places` (M,) -> `states` (B, S, C), `log_probabilities` (M, V).

A causal model has a key-value cache: `past.L.key` and `past.L.value` (P, H, T, D) are each layer's keys and values of
the T previous tokens, `rows` (B,) the index among the P texts that each row continues, `place` (1,) is T, and
`present.L...` (B, H, T + S, D) is the next past. T is 0 at the start of a text.
"""

import numpy as np
import onnx

from transformer.conversion.onnx_graph import FLOAT, INTEGER, Graph
from transformer.conversion.onnx_layers import array, counted, embedded, encoded, hidden_later, normed, stack
from transformer.families.language.nn.model import LanguageTransformer, OutputTransform

PARTS = ("key", "value")


def language_graph(model: LanguageTransformer) -> onnx.ModelProto:
    """Return the graph of a language model; places index the flattened ids (B * S,)."""
    graph = Graph("language_model")
    ids, places = graph.input("ids", INTEGER, ["B", "S"]), graph.input("places", INTEGER, ["M"])
    states = _continued(graph, model, ids) if model.causal else _states(graph, model, ids)
    width = model.config.model.d_model
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


def _states(graph: Graph, model: LanguageTransformer, ids: str) -> str:
    """Return the states (B, S, C) of ids (B, S) with bidirectional attention."""
    real = graph.add("Not", graph.add("Equal", ids, graph.constant(model.config.pad_id, np.int64)))
    positions = counted(graph, ids)
    return encoded(graph, model.encoder, embedded(graph, model.embedding, ids, positions), real, positions)


def _continued(graph: Graph, model: LanguageTransformer, ids: str) -> str:
    """Return the states (B, S, C) of ids (B, S) with causal attention to the past; declares past and present.

    Padding needs no mask: it is at the end, after all real tokens.
    """
    place, rows = graph.input("place", INTEGER, [1]), graph.input("rows", INTEGER, ["B"])
    start, one = graph.add("Squeeze", place), graph.constant(1, np.int64)
    stop = graph.add("Add", start, graph.add("Squeeze", graph.size(ids, 1)))
    positions = graph.add("Range", start, stop, one)
    keys = graph.add("Range", graph.constant(0, np.int64), stop, one)
    params = model.config.model
    heads, width = params.heads, params.dimension_of_head
    past = [
        [graph.input(f"past.{layer}.{part}", FLOAT, ["P", heads, "T", width]) for part in PARTS]
        for layer in range(params.layers)
    ]
    present: dict[str, str] = {}

    def extend(layer: int, key: str, value: str) -> tuple[str, str]:
        kept = (graph.add("Gather", part, rows, axis=0) for part in past[layer])
        both = [graph.add_many("Concat", pair, 1, axis=2)[0] for pair in zip(kept, (key, value), strict=True)]
        present.update({f"present.{layer}.{part}": each for part, each in zip(PARTS, both, strict=True)})
        return both[0], both[1]

    states = embedded(graph, model.embedding, ids, positions)
    states = stack(graph, model.encoder, states, hidden_later(graph, positions, keys), positions, extend)
    for name, each in present.items():
        graph.output(name, each, FLOAT, ["B", heads, "T_present", width])
    return states
