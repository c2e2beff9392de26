"""Opening of converted classifiers; loads neither PyTorch nor spaCy."""

from pathlib import Path
from typing import Any

from transformer.conversion.parts import read_parts
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier, Scorer


def open_converted(task: Task, folder: Path, config: dict[str, Any], threads: int | None = None) -> Classifier:
    """Open a folder written by `convert`. config: its config.json; threads: None for all processors.

    Raises UserError if a part is missing or broken.
    """
    params = validate(ClassificationParams, config.get("decoding", {}), where=folder / "config.json", prefix="decoding")
    vocabularies, positions = read_parts(folder, config)
    vocabulary = vocabularies["text"]
    pad_id, classes = vocabulary.pad_id, len(task.classes)
    if config["engine"].startswith("onnx"):
        from transformer.families.classifier.conversion.onnx_scorer import OnnxScorer

        scorer: Scorer = OnnxScorer(
            folder / "model", positions=positions, pad_id=pad_id, classes=classes, threads=threads
        )
    else:
        from transformer.families.classifier.conversion.ctranslate2_scorer import CTranslate2Scorer

        scorer = CTranslate2Scorer(
            folder / "model", size=vocabulary.size, positions=positions, pad_id=pad_id, classes=classes, threads=threads
        )
    return Classifier(scorer, vocabulary, folder, params, task.classes)


def best_engine(config: dict[str, Any], available: list[str]) -> str:
    """Return the fastest engine that predicts as `evaluate` did. config: the bundle's; available: other than torch."""
    return next((name for name in ("onnx", "ctranslate2") if name in available), "torch")
