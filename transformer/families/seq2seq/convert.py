"""convert: the exported translation model in CTranslate2 and ONNX, verified on validation pairs."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from transformer.checkpoint.device import prepare
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs, ConvertParams, convert_all
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task
from transformer.export.bundle import open_bundle
from transformer.families.seq2seq.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.seq2seq.conversion.examples import ctranslate2_example, onnx_example
from transformer.families.seq2seq.conversion.onnx_model import write_onnx
from transformer.families.seq2seq.conversion.verify import Verification
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer


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
        model, vocabularies = self._exported.model, self._exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabularies["source"], vocabularies["target"], int8=int8)

        return self._conversion(ctranslate2_example(*self._first, self._exported), write)

    def onnx(self) -> Conversion | str:
        """The conversion to ONNX, or why there is none."""
        model, vocabularies = self._exported.model, self._exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "recurrent decoders (model.kind `recurrent`) are served by PyTorch alone"

        def write(folder: Path, int8: bool) -> None:
            write_onnx(folder, model, vocabularies["source"], vocabularies["target"], int8=int8)

        return self._conversion(onnx_example(*self._first, self._exported), write)

    def _conversion(self, example: str, write: Callable[[Path, bool], None]) -> Conversion:
        return Conversion({"positions": self._exported.generator.positions}, example, write, self._verification.verify)

    @cached_property
    def _exported(self) -> TorchTranslator:
        exported = open_bundle(self._inputs.bundle, "cpu")
        assert isinstance(exported, TorchTranslator)
        return exported

    @cached_property
    def _verification(self) -> Verification:
        rows = self._inputs.validation_rows(self._params.convert.verify_rows)
        return Verification(self._inputs.bundle, self._exported, rows, self._params.hardware.threads)

    @property
    def _first(self) -> tuple[str, list[str]]:
        """A text of the validation split, and its pieces."""
        pieces = self._exported.vocabularies["source"].entries(self._verification.sources[0])
        return self._inputs.validation_rows(1)[0]["source"], pieces
