"""convert: the exported classifier in CTranslate2 and ONNX, verified on validation texts."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from transformer.checkpoint.device import prepare
from transformer.conversion.onnx_graph import quantized, write_model
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs, ConvertParams, convert_all
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task
from transformer.export.bundle import open_bundle
from transformer.families.classifier.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.classifier.conversion.examples import ctranslate2_example, onnx_example
from transformer.families.classifier.conversion.onnx_model import classifier_graph
from transformer.families.classifier.conversion.verify import Verification
from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.nn.model import TransformerClassifier


class Params(StageParams):
    """The stage's parameters."""

    convert: ConvertParams
    hardware: Hardware


def run(
    task: Task, params: Params, *, inputs: ConvertInputs, outputs: ConvertOutputs, observer: Observer
) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    prepare(params.hardware)
    convert = _Converter(params, inputs)
    return convert_all(
        params.convert, {"ctranslate2": convert.ctranslate2, "onnx": convert.onnx}, inputs, outputs, observer
    )


class _Converter:
    """Opens the exported model when the first format asks for it."""

    def __init__(self, params: Params, inputs: ConvertInputs) -> None:
        self._params, self._inputs = params, inputs

    def ctranslate2(self) -> Conversion | str:
        """The conversion to CTranslate2, or why it cannot hold the model."""
        model, vocabulary = self._exported.model, self._exported.vocabulary
        if not isinstance(model, TransformerClassifier):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabulary, int8=int8)

        return self._conversion(ctranslate2_example(*self._first, self._exported), write)

    def onnx(self) -> Conversion:
        """The conversion to ONNX, which can hold every classifier."""
        model = self._exported.model

        def write(folder: Path, int8: bool) -> None:
            graph = classifier_graph(model)
            write_model(folder / "classifier.onnx", quantized(graph) if int8 else graph)

        return self._conversion(onnx_example(*self._first, self._exported), write)

    def _conversion(self, example: str, write: Callable[[Path, bool], None]) -> Conversion:
        return Conversion({"positions": self._exported.scorer.positions}, example, write, self._verification.verify)

    @cached_property
    def _exported(self) -> TorchClassifier:
        exported = open_bundle(self._inputs.bundle, "cpu")
        assert isinstance(exported, TorchClassifier)
        return exported

    @cached_property
    def _verification(self) -> Verification:
        rows = self._inputs.validation_rows(self._params.convert.verify_rows)
        return Verification(self._exported, rows, self._params.hardware.threads)

    @property
    def _first(self) -> tuple[str, list[int]]:
        """A text of the validation split, and its ids."""
        return self._inputs.validation_rows(1)[0]["text"], self._verification.sequences[0].tolist()
