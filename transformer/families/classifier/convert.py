"""convert: the exported classifier in CTranslate2 and ONNX, verified on validation texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.nn.model import TransformerClassifier

__all__ = ["Params", "run"]


def run(
    task: Task, params: Params, *, inputs: ConvertInputs, outputs: ConvertOutputs, observer: Observer
) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return ClassifierConverter(params, inputs).run(outputs, observer)


class ClassifierConverter(Converter[TorchClassifier, Verification]):
    """The conversions of a classifier."""

    kind = TorchClassifier

    def ctranslate2(self) -> Conversion | str:
        """As `Converter.ctranslate2`."""
        model, vocabulary = self.exported.model, self.exported.vocabulary
        if not isinstance(model, TransformerClassifier):
            return "CTranslate2 has no recurrent layers (model.kind `recurrent`)"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabulary, int8=int8)

        return self._conversion(ctranslate2_example, write)

    def onnx(self) -> Conversion:
        """As `Converter.onnx`."""
        model = self.exported.model

        def write(folder: Path, int8: bool) -> None:
            graph = classifier_graph(model)
            write_model(folder / "classifier.onnx", quantized(graph) if int8 else graph)

        return self._conversion(onnx_example, write)

    def verified_with(self, rows: list[dict[str, str]]) -> Verification:
        """As `Converter.verified_with`."""
        return Verification(self.exported, rows, self.params.hardware.threads)

    def _conversion(
        self, example: Callable[[str, Sequence[int], TorchClassifier], str], write: Callable[[Path, bool], None]
    ) -> Conversion:
        """A conversion with the wide branch, if there is one, beside the network that `write` writes."""
        exported, wide = self.exported, self.exported.wide

        def write_both(folder: Path, int8: bool) -> None:
            write(folder, int8)
            if wide is not None:
                wide.save(folder)

        code = example(self.rows[0]["text"], self.verification.sequences[0].tolist(), exported)
        made = self.conversion({"text": exported.vocabulary}, exported.scorer.positions, code, write_both)
        named = exported.model.config.model.model_dump()
        kept = {str(leaf): named[leaf] for leaf in ("wide_ngrams", "wide_vectors") if leaf in named}
        return replace(made, model={**made.model, **kept})
