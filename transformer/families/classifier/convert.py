"""convert: converts the exported classifier to CTranslate2 and ONNX, and verifies both on validation texts."""

from collections.abc import Callable, Sequence
from pathlib import Path

from transformer.conversion.converter import Converter, Params
from transformer.conversion.onnx_graph import quantized, write_model
from transformer.conversion.stage import Conversion, ConvertInputs, ConvertOutputs
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.families.classifier.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.classifier.conversion.examples import ctranslate2_example, onnx_example
from transformer.families.classifier.conversion.onnx_model import classifier_graph
from transformer.families.classifier.conversion.verify import Verification
from transformer.families.classifier.decoding.labels import Classifier
from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.nn.model import TransformerClassifier

__all__ = ["Params", "run"]

_NO_NETWORK = "a model of n-grams (model.kind `ngrams`) has no network to convert"


def run(
    task: Task, params: Params, *, inputs: ConvertInputs, outputs: ConvertOutputs, observer: Observer
) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return ClassifierConverter(params, inputs).run(outputs, observer)


class ClassifierConverter(Converter[Classifier, Verification]):
    """Converter for classifiers."""

    kind = Classifier

    def ctranslate2(self) -> Conversion | str:
        """Return the CTranslate2 conversion, or the reason why there is none."""
        exported = self.exported
        if not isinstance(exported, TorchClassifier):
            return _NO_NETWORK
        model, vocabulary = exported.model, exported.vocabulary
        if not isinstance(model, TransformerClassifier):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabulary, int8=int8)

        return self._conversion(exported, ctranslate2_example, write)

    def onnx(self) -> Conversion | str:
        """Return the ONNX conversion, or the reason why there is none."""
        exported = self.exported
        if not isinstance(exported, TorchClassifier):
            return _NO_NETWORK

        def write(folder: Path, int8: bool) -> None:
            graph = classifier_graph(exported.model)
            write_model(folder / "classifier.onnx", quantized(graph) if int8 else graph)

        return self._conversion(exported, onnx_example, write)

    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """Return the verification of converted models on `rows`."""
        return Verification(self.exported, rows, self.params.hardware.threads)

    def _conversion(
        self,
        exported: TorchClassifier,
        example: Callable[[str, Sequence[int], TorchClassifier], str],
        write: Callable[[Path, bool], None],
    ) -> Conversion:
        code = example(self.rows[0]["text"], self.verification.sequences[0].tolist(), exported)
        return self.conversion({"text": exported.vocabulary}, exported.scorer.positions, code, write)
