"""convert: converts the exported language model to CTranslate2 and ONNX, and verifies both on validation texts."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import INT8, Task
from transformer.evaluation.bootstrap import Floats, bootstrap
from transformer.families.language.engines import CAUSAL
from transformer.families.language.formats import ctranslate2_example, language_graph, onnx_example, write_ctranslate2
from transformer.families.language.model import LanguageModel
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.scoring import TokenScores, each_token
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.inference.bundle import CONFIG, open_bundle
from transformer.inference.conversion import (
    Conversion,
    Converter,
    Params,
    require_close,
    require_quality,
)
from transformer.inference.onnx_export import quantized, write_model

_SAMPLES = 1000
_NO_GRAPH = {
    "transformer_xl": "a graph reads one segment, and what is around it would have to remember the others",
    "reformer": "a graph has no hashes that are the same in every runtime: they decide what a token sees",
}
"""Why ONNX does not hold a kind of model."""


class Verification:
    """The exported model's scores, to compare converted models against."""

    def __init__(self, exported: TorchLanguageModel, rows: Sequence[dict[str, str]], threads: int) -> None:
        """rows: of predictions.tsv."""
        self._texts, self._threads = [row["text"] for row in rows], threads
        self._exported = _scored(exported, self._texts)

    def verify(self, folder: Path, int8: bool) -> dict[str, float]:
        """Compare the model in `folder`. Raises UserError if it differs by more than rounding (summation order)."""
        engine = read_json(folder / CONFIG)["engine"]
        opened = open_bundle(folder, threads=self._threads)
        assert isinstance(opened, LanguageModel)
        found = _scored(opened, self._texts)
        pairs = list(zip(found, self._exported, strict=True))
        differences = [float(np.abs(a.log_probabilities - b.log_probabilities).max(initial=0.0)) for a, b in pairs]
        figures: dict[str, float] = {"rows": len(pairs)}
        figures |= require_close(engine, differences, "log probability of a token")
        figures |= {"equal": sum(np.array_equal(a.best, b.best) for a, b in pairs)}
        own, exported = (np.array([100.0 * each.right.sum() for each in scores]) for scores in (found, self._exported))
        tokens = np.array([float(len(each.right)) for each in self._exported])

        def lead(weights: Floats) -> float:
            return float(weights @ (own - exported) / max(weights @ tokens, 1))

        drawn = bootstrap(lead, len(pairs), _SAMPLES if engine.endswith(INT8) else 0)
        shares = [float(right.sum() / max(tokens.sum(), 1)) for right in (own, exported)]
        return figures | require_quality(engine, "accuracy", shares[0], shares[1], drawn)


def _scored(model: LanguageModel, texts: Sequence[str]) -> list[TokenScores]:
    return each_token(model.engine, model.encode(texts), model.decoding)


__all__ = ["Params", "run"]


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write and verify the formats. Returns their sizes."""
    return LanguageConverter(params, paths).run(observer)


class LanguageConverter(Converter[TorchLanguageModel, Verification]):
    """Converter for language models."""

    kind = TorchLanguageModel

    def ctranslate2(self) -> Conversion | str:
        """Return the CTranslate2 conversion, or the reason why there is none."""
        model, vocabulary = self.exported.model, self.exported.vocabulary
        if not isinstance(model, LanguageTransformer):
            return f"CTranslate2 has no layers of model.kind `{model.config.model.kind}`"
        if not model.causal:
            return "CTranslate2 has no output layer over an encoder (model.objective `masked`); ONNX holds the model"
        if model.config.model.output != "plain":
            return "CTranslate2's decoder has no output transform, which belongs to BERT"

        def write(folder: Path, int8: bool) -> None:
            write_ctranslate2(folder, model, vocabulary, int8=int8)

        return self._conversion(ctranslate2_example(self.exported, self._ids()), write)

    def onnx(self) -> Conversion | str:
        """Return the ONNX conversion, or the reason why there is none."""
        model = self.exported.model
        if not isinstance(model, LanguageTransformer):
            return _NO_GRAPH[model.config.model.kind]
        graph = language_graph(model)

        def write(folder: Path, int8: bool) -> None:
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
