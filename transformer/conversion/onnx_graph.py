"""Build ONNX graphs node by node, and write them deterministically.

Not by `torch.onnx.export`, which traces Python, freezes sizes that its examples share, and writes the machine's paths
into every node.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from transformer.core.files import atomic_write

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
