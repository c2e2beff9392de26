"""Networks as ONNX models, by PyTorch's exporter, in float32 and 8 bits."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from transformer.core.files import atomic_write
from transformer.nn.attention import KeyValue

_OPSET = 20
"""Old enough for 2024 runtimes; the first with Gelu."""

Tensors = dict[str, Tensor]


class Input(NamedTuple):
    """An input of a model."""

    dtype: torch.dtype
    dims: Sequence[int | str]
    """Sizes; a name is a dynamic dimension."""


class _Exportable(nn.Module):
    def __init__(self, network: nn.Module, compute: Callable[[Tensors], Tensors]) -> None:
        super().__init__()
        self.network, self.compute = network, compute

    def forward(self, given: Tensors) -> Tensors:
        return self.compute(given)


def exported(
    network: nn.Module, compute: Callable[[Tensors], Tensors], inputs: Mapping[str, Input], sizes: Mapping[str, int]
) -> onnx.ModelProto:
    """Return `compute`, a function of named tensors that calls `network`, as an ONNX model.

    sizes: of the dynamic dimensions in an example, larger than 1, since the exporter takes 0 and 1 for constants.
    """
    shapes = {name: [sizes[dim] if isinstance(dim, str) else dim for dim in each.dims] for name, each in inputs.items()}
    # Separate tensors: inputs that are the same object would become one input.
    examples = {name: torch.ones(shape, dtype=inputs[name].dtype) for name, shape in shapes.items()}
    names = {
        name: {axis: dim for axis, dim in enumerate(each.dims) if isinstance(dim, str)} for name, each in inputs.items()
    }
    outputs: list[str] = []

    def noted(given: Tensors) -> Tensors:
        found = compute(given)
        outputs[:] = found
        return found

    with _quiet():
        traced = torch.export.export(
            _Exportable(network, noted).eval(),
            (),
            {"given": examples},
            dynamic_shapes={"given": {name: dict.fromkeys(axes, Dim.DYNAMIC) for name, axes in names.items()}},
            prefer_deferred_runtime_asserts_over_guards=True,  # takes a third of the time
        )
        program = torch.onnx.export(
            traced,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes={"given": names},
            opset_version=_OPSET,
            verbose=False,
        )
    assert program is not None
    return _plain(program.model_proto)


_PARTS = ("key", "value")


def flat(name: str, memory: Sequence[KeyValue]) -> Tensors:
    """Name the keys and values of all layers."""
    return {
        f"{name}.{layer}.{part}": each
        for layer, held in enumerate(memory)
        for part, each in zip(_PARTS, held, strict=True)
    }


def memory(name: str, layers: int, *dims: int | str) -> dict[str, Input]:
    """Declare the keys and values of all layers as inputs."""
    return {f"{name}.{layer}.{part}": Input(torch.float32, dims) for layer in range(layers) for part in _PARTS}


def by_layer(name: str, given: Tensors, layers: int) -> list[KeyValue]:
    """Return the keys and values that `flat` named."""
    return [KeyValue(*(given[f"{name}.{layer}.{part}"] for part in _PARTS)) for layer in range(layers)]


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
        with _quiet():  # it recommends preprocessing that is meant for images
            quantize_dynamic(before, after, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        return _plain(onnx.load(after))


@contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove the producer's name and notes, which differ by machine or version, and the shapes of inner values."""
    model.producer_name = model.producer_version = ""
    graph = model.graph
    del graph.value_info[:]
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.ClearField("doc_string")
    return model
