"""convert: converts the exported classifier to CTranslate2 and ONNX, and verifies both on validation texts."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import INT8, Task
from transformer.data.store import Ids
from transformer.evaluation.bootstrap import Floats, bootstrap
from transformer.families.classifier.classifier import Classifier, class_logits, softmax
from transformer.families.classifier.formats import (
    classifier_graph,
    ctranslate2_example,
    onnx_example,
    write_ctranslate2,
)
from transformer.families.classifier.network import TransformerClassifier
from transformer.families.classifier.torch_classifier import TorchClassifier
from transformer.inference.bundle import CONFIG, open_bundle
from transformer.inference.conversion import (
    TIE,
    Conversion,
    Converter,
    Params,
    require_close,
    require_quality,
)
from transformer.inference.onnx_export import quantized, write_model

_BATCH = 64
_SAMPLES = 1000


class Verification:
    """The exported model's predictions, to compare converted models against."""

    def __init__(self, exported: Classifier, rows: Sequence[dict[str, str]], threads: int) -> None:
        """rows: of predictions.tsv."""
        self._rows, self._threads = rows, threads
        self.sequences = exported.encode([row["text"] for row in rows])
        self._labels = [row["label"] for row in rows]
        self._classes = exported.classes
        self._exported = _probabilities(exported, self.sequences)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than rounding (summation order)."""
        engine = read_json(folder / CONFIG)["engine"]
        opened = open_bundle(folder, threads=self._threads)
        assert isinstance(opened, Classifier)
        found = _probabilities(opened, self.sequences)
        figures: dict[str, float] = {"rows": len(self._rows)}
        figures |= require_close(engine, np.abs(found - self._exported).max(axis=1).tolist(), "probability")
        own, theirs = found.argmax(axis=1), self._exported.argmax(axis=1)
        other = np.flatnonzero(own != theirs)
        for number in other.tolist() if not engine.endswith(INT8) else []:
            probabilities = self._exported[number]
            if probabilities[theirs[number]] - probabilities[own[number]] > TIE:
                raise UserError(
                    f"{engine} calls {self._rows[number]['text'][:80]!r} {self._classes[own[number]]}, and the exported"
                    f" model {self._classes[theirs[number]]}: not written; leave this format out of convert.formats"
                )
        figures |= {"equal": len(self._rows) - len(other), "ties": 0 if engine.endswith(INT8) else len(other)}
        labels = np.array([self._classes.index(label) for label in self._labels])
        right = 100.0 * (own == labels), 100.0 * (theirs == labels)
        samples = _SAMPLES if engine.endswith(INT8) else 0
        lead = bootstrap(lambda weights: float(weights @ (right[0] - right[1])) / len(labels), len(labels), samples)
        return figures | require_quality(engine, "accuracy", float(right[0].mean()), float(right[1].mean()), lead)


def _probabilities(model: Classifier, sequences: Sequence[Ids]) -> Floats:
    return softmax(class_logits(model.scorer, sequences, batch_size=_BATCH, observer=Observer()))


__all__ = ["Params", "run"]

_NO_NETWORK = "a model of n-grams (model.kind `ngrams`) has no network to convert"


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return ClassifierConverter(params, paths).run(observer)


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
        graph = classifier_graph(exported.model)

        def write(folder: Path, int8: bool) -> None:
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
