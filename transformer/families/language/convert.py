"""convert: converts the exported language model to CTranslate2 and ONNX, and verifies both on validation texts."""

from collections.abc import Callable
from pathlib import Path

from transformer.conversion.converter import Converter, Params
from transformer.conversion.onnx_graph import quantized, write_model
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.families.language.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.language.conversion.examples import ctranslate2_example, onnx_example
from transformer.families.language.conversion.onnx_model import language_graph
from transformer.families.language.conversion.opening import CAUSAL
from transformer.families.language.conversion.verify import Verification
from transformer.families.language.decoding.with_torch import TorchLanguageModel

__all__ = ["Params", "run"]


def run(
    task: Task, params: Params, *, inputs: ConvertInputs, outputs: ConvertOutputs, observer: Observer
) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return LanguageConverter(params, inputs).run(outputs, observer)


class LanguageConverter(Converter[TorchLanguageModel, Verification]):
    """Converter for language models."""

    kind = TorchLanguageModel

    def ctranslate2(self) -> Conversion | str:
        """Return the CTranslate2 conversion, or the reason why there is none."""
        model, vocabulary = self.exported.model, self.exported.vocabulary
        if not model.causal:
            return "CTranslate2 has no output layer over an encoder (model.objective `masked`); ONNX holds the model"
        if model.config.model.output != "plain":
            return "CTranslate2's decoder has no output transform, which belongs to BERT"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabulary, int8=int8)

        return self._conversion(ctranslate2_example(self.exported, self._ids()), write)

    def onnx(self) -> Conversion:
        """Return the ONNX conversion."""
        model = self.exported.model

        def write(folder: Path, int8: bool) -> None:
            graph = language_graph(model)
            write_model(folder / "language_model.onnx", quantized(graph) if int8 else graph)

        return self._conversion(onnx_example(self.exported, self._ids()), write)

    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """Return the verification of converted models on `rows`."""
        return Verification(self.exported, rows, self.params.hardware.threads)

    def _ids(self) -> list[int]:
        found: list[int] = self.exported.encode([self.rows[0]["text"]])[0].tolist()
        return found

    def _conversion(self, example: str, write: Callable[[Path, bool], None]) -> Conversion:
        engine, vocabulary = self.exported.engine, {"text": self.exported.vocabulary}
        return self.conversion(vocabulary, engine.positions, example, write, **{CAUSAL: engine.causal})
