"""convert: converts the exported translation model to CTranslate2 and ONNX, and verifies both on validation pairs."""

from pathlib import Path

from transformer.conversion.converter import Converter, Params
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.families.seq2seq.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.seq2seq.conversion.examples import ctranslate2_example, onnx_example
from transformer.families.seq2seq.conversion.onnx_model import write_onnx
from transformer.families.seq2seq.conversion.verify import Verification
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer

__all__ = ["Params", "run"]


def run(
    task: Task, params: Params, *, inputs: ConvertInputs, outputs: ConvertOutputs, observer: Observer
) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return Seq2SeqConverter(params, inputs).run(outputs, observer)


class Seq2SeqConverter(Converter[TorchTranslator, Verification]):
    """Converter for translation models."""

    kind = TorchTranslator

    def ctranslate2(self) -> Conversion | str:
        """Return the CTranslate2 conversion, or the reason why there is none."""
        model, vocabularies = self.exported.model, self.exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabularies["source"], vocabularies["target"], int8=int8)

        example = ctranslate2_example(self.rows[0]["source"], self._first_pieces(), self.exported)
        return self.conversion(vocabularies, self.exported.generator.positions, example, write)

    def onnx(self) -> Conversion | str:
        """Return the ONNX conversion, or the reason why there is none."""
        model, vocabularies = self.exported.model, self.exported.vocabularies
        if not isinstance(model, Seq2SeqTransformer):
            return "recurrent decoders (model.kind `recurrent`) are served by PyTorch alone"

        def write(folder: Path, int8: bool) -> None:
            write_onnx(folder, model, vocabularies["source"], vocabularies["target"], int8=int8)

        example = onnx_example(self.rows[0]["source"], self._first_pieces(), self.exported)
        return self.conversion(vocabularies, self.exported.generator.positions, example, write)

    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """Return the verification of converted models on `rows`."""
        return Verification(self.inputs.bundle, self.exported, rows, self.params.hardware.threads)

    def _first_pieces(self) -> list[str]:
        return self.exported.vocabularies["source"].entries(self.verification.sources[0])
