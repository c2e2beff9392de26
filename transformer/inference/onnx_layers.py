"""ONNX graphs, built node by node: the layers of this package, in float32 and 8 bits."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from transformer.core.files import atomic_write
from transformer.nn.attention import MultiHeadAttention
from transformer.nn.layers import FeedForward, Residual
from transformer.nn.positions import RotaryPositions, TokenEmbedding

_OPSET, _IR = 20, 10
"""Old enough for 2024 runtimes; opset 20 is the first with Gelu."""

Array = NDArray[Any]
INTEGER, FLOAT, BOOLEAN = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
Dims = Sequence[int | str]
"""Sizes; a name is a dynamic dimension."""


class Graph:
    """A graph being built. Values are referred to by name; `dims` of inputs and outputs may be names."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def input(self, name: str, kind: int, dims: Dims) -> str:
        """Declare an input of the graph."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [*dims]))
        return name

    def output(self, name: str, value: str, kind: int, dims: Dims) -> None:
        """Declare `value` as an output of the graph."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, [*dims]))

    def constant(self, array: Any, kind: Any = None) -> str:
        """Add an array as a value; equal ones, such as tied embeddings, are stored once."""
        held = np.asarray(array, dtype=kind, order="C")
        key = (held.dtype.str, held.shape, held.tobytes())
        if key not in self._known:
            self._known[key] = name = f"c{len(self._known)}"
            self._weights[name] = numpy_helper.from_array(held, name)
        return self._known[key]

    def add(self, operator: str, *values: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.add_many(operator, values, 1, **attributes)[0]

    def add_many(self, operator: str, values: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; an empty name leaves out an optional input."""
        names = [f"v{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(operator, [*values], names, **attributes))
        return names

    def integers(self, *values: int) -> str:
        """Add a constant vector of int64."""
        return self.constant(values, np.int64)

    def size(self, value: str, axis: int) -> str:
        """Return the size of one dimension, (1,)."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def linear(self, states: str, weight: Array, bias: Array | None) -> str:
        """Map states (..., I) to (..., O); weight: (O, I), as in `torch.nn.Linear`."""
        product = self.add("MatMul", states, self.constant(weight.T))
        return product if bias is None else self.add("Add", product, self.constant(bias))

    def model(self) -> onnx.ModelProto:
        """Return the checked model. Raises onnx.checker.ValidationError for an invalid graph."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, [*self._weights.values()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        onnx.checker.check_model(model, full_check=True)
        return _plain(model)


def write_model(path: Path, model: onnx.ModelProto) -> None:
    """Write a model in one file, atomically."""
    with atomic_write(path) as stream:
        stream.write(model.SerializeToString(deterministic=True))


def quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Quantize weights to 8 bits per output channel; states are quantized dynamically, by their largest value.

    7 bits are used (`reduce_range`): without VNNI instructions, sums of two 8-bit products overflow.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
        write_model(before, model)
        logging.disable(logging.WARNING)  # it recommends preprocessing that is meant for images
        try:
            quantize_dynamic(before, after, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        finally:
            logging.disable(logging.NOTSET)
        return _plain(onnx.load(after))


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove what differs by machine or version from the model: the producer's name and notes."""
    model.producer_name = model.producer_version = ""
    del model.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    return model


_HIDDEN = np.float32(np.finfo(np.float32).min)


def array(tensor: Tensor) -> Array:
    """Copy a tensor to float32: CTranslate2 quantizes its arrays in place, which would change the model's own."""
    found: Array = tensor.detach().float().cpu().numpy().copy()
    return found


def embedded(graph: Graph, embedding: TokenEmbedding, ids: str, positions: str) -> str:
    """Embed ids (B, T) at positions (T,): (B, T, C)."""
    states = graph.add("Gather", graph.constant(array(embedding.tokens.weight)), ids, axis=0)
    if embedding.scale != 1:
        states = graph.add("Mul", states, graph.constant(embedding.scale, np.float32))
    table = position_table(embedding)
    if table is not None:
        states = graph.add("Add", states, graph.add("Gather", graph.constant(table), positions, axis=0))
    return states


def position_table(embedding: TokenEmbedding) -> Array | None:
    """Return the vector added at each position, (L, C); None if there is none."""
    table: Any = getattr(embedding.positions, "table", None)
    return None if table is None else array(table.weight if isinstance(table, nn.Embedding) else table)


def hidden_padding(graph: Graph, real: str) -> str:
    """Return the mask term (B, 1, 1, S) for padding; real: (B, S), False on padding."""
    kept = graph.add("Unsqueeze", real, graph.integers(1, 2))
    return graph.add("Where", kept, graph.constant(0, np.float32), graph.constant(_HIDDEN))


def counted(graph: Graph, ids: str) -> str:
    """Return the positions 0 to T - 1 of ids (B, T)."""
    length = graph.add("Squeeze", graph.size(ids, 1))
    return graph.add("Range", graph.constant(0, np.int64), length, graph.constant(1, np.int64))


@dataclass(frozen=True)
class Attention:
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) as nodes.

    Rotary positions turn the two halves of a head here, and pairs of neighbours in PyTorch: the weights are reordered,
    which no product of a query and a key sees.
    """

    graph: Graph
    module: MultiHeadAttention

    def keys_and_values(self, states: str, positions: str | None = None) -> tuple[str, str]:
        """Project states (B, S, C) to keys and values, (B, H, S, D) each; positions: of the states, (S,)."""
        key = self._heads(states, *self._turnable(self.module.key))
        value = self._heads(states, array(self.module.value.weight), array(self.module.value.bias))
        return self._turned(key, positions), value

    def attended(
        self, states: str, key: str, value: str, hidden: str | None = None, positions: str | None = None
    ) -> str:
        """Attend from states (B, T, C) to keys and values (B, H, S, D); hidden: mask term added to the scores."""
        weight, bias = self._turnable(self.module.query)
        scale = np.float32(self._head_dim**-0.5)
        query = self._turned(self._heads(states, weight * scale, bias * scale), positions)
        scores = self.graph.add("MatMul", query, self.graph.add("Transpose", key, perm=[0, 1, 3, 2]))
        if hidden is not None:
            scores = self.graph.add("Add", scores, hidden)
        read = self.graph.add("MatMul", self.graph.add("Softmax", scores, axis=-1), value)
        joined = self.graph.add("Transpose", read, perm=[0, 2, 1, 3])
        width = self.module.heads * self._head_dim
        joined = self.graph.add("Reshape", joined, self.graph.integers(0, 0, width))
        return self.graph.linear(joined, array(self.module.output.weight), array(self.module.output.bias))

    @property
    def _head_dim(self) -> int:
        return self.module.query.out_features // self.module.heads

    @property
    def _rotary(self) -> RotaryPositions | None:
        return self.module.positions if isinstance(self.module.positions, RotaryPositions) else None

    def _turnable(self, projection: nn.Linear) -> tuple[Array, Array]:
        """Return weight and bias of queries or keys; for rotary positions, each pair's first before the second ones."""
        weight, bias = array(projection.weight), array(projection.bias)
        if self._rotary is None:
            return weight, bias
        order = np.arange(len(bias)).reshape(self.module.heads, -1, 2).transpose(0, 2, 1).ravel()
        return weight[order], bias[order]

    def _heads(self, states: str, weight: Array, bias: Array) -> str:
        """Project to heads: (B, T, C) -> (B, H, T, D)."""
        split = self.graph.integers(0, 0, self.module.heads, self._head_dim)
        heads = self.graph.add("Reshape", self.graph.linear(states, weight, bias), split)
        return self.graph.add("Transpose", heads, perm=[0, 2, 1, 3])

    def _turned(self, heads: str, positions: str | None) -> str:
        if self._rotary is None or positions is None:
            return heads
        table = array(self._rotary.table).reshape(len(self._rotary.table), -1, 2)
        sine, cosine = (
            self.graph.add("Gather", self.graph.constant(table[:, :, part]), positions, axis=0) for part in (0, 1)
        )
        one, two = self.graph.add_many("Split", [heads], 2, axis=-1, num_outputs=2)
        turned = [
            self.graph.add(sign, self.graph.add("Mul", first, cosine), self.graph.add("Mul", second, sine))
            for sign, first, second in (("Sub", one, two), ("Add", two, one))
        ]
        return self.graph.add_many("Concat", turned, 1, axis=-1)[0]


def normed(graph: Graph, norm: nn.Module, states: str) -> str:
    """Apply layer normalization; the identity adds no node."""
    if not isinstance(norm, nn.LayerNorm):
        return states
    weights = (graph.constant(array(norm.weight)), graph.constant(array(norm.bias)))
    return graph.add("LayerNormalization", states, *weights, axis=-1, epsilon=norm.eps)


def residual(graph: Graph, module: Residual, states: str, sublayer: Any) -> str:
    """Add the residual connection around `sublayer`, a function of the name of its input."""
    if module.pre:
        return graph.add("Add", states, sublayer(normed(graph, module.norm, states)))
    return normed(graph, module.norm, graph.add("Add", states, sublayer(states)))


def feed_forward(graph: Graph, module: FeedForward, states: str) -> str:
    """Compute FFN(x) = activation(x W_1 + b_1) W_2 + b_2 (eq. 2)."""
    inner = graph.linear(states, array(module.inner.weight), array(module.inner.bias))
    tanh = {"approximate": "tanh"} if getattr(module.activation, "approximate", "none") == "tanh" else {}
    active = graph.add("Relu", inner) if isinstance(module.activation, nn.ReLU) else graph.add("Gelu", inner, **tanh)
    return graph.linear(active, array(module.outer.weight), array(module.outer.bias))


def hidden_later(graph: Graph, positions: str, keys: str | None = None) -> str:
    """Return the mask term (1, 1, S, K) for later tokens, and so for padding at the end.

    positions: (S,); keys: (K,), the positions attended to, default the same.
    """
    given = ((1, positions), (0, keys or positions))
    query, key = (graph.add("Unsqueeze", each, graph.integers(axis)) for axis, each in given)
    seen = graph.add("GreaterOrEqual", query, key)
    term = graph.add("Where", seen, graph.constant(0, np.float32), graph.constant(_HIDDEN))
    return graph.add("Unsqueeze", term, graph.integers(0, 1))


def encoded(graph: Graph, encoder: Any, states: str, real: str, positions: str) -> str:
    """Compute the encoder's output (B, S, C); real: (B, S), False on padding."""
    return stack(graph, encoder, states, hidden_padding(graph, real), positions, lambda layer, key, value: (key, value))


Extend = Callable[[int, str, str], tuple[str, str]]
"""Layer index, and its keys and values (B, H, S, D) -> those attended to, (B, H, K, D)."""


def stack(graph: Graph, encoder: Any, states: str, hidden: str, positions: str, extend: Extend) -> str:
    """Compute a stack's output (B, S, C); hidden: mask term added to the scores; positions: (S,)."""
    for number, layer in enumerate(encoder.layers):
        attention = Attention(graph, layer.attention)

        def attend(x: str, attention: Attention = attention, number: int = number) -> str:
            memory = extend(number, *attention.keys_and_values(x, positions))
            return attention.attended(x, *memory, hidden, positions)

        states = residual(graph, layer.attention_residual, states, attend)
        states = residual(graph, layer.feed_forward_residual, states, partial(feed_forward, graph, layer.feed_forward))
    return normed(graph, encoder.norm, states)
