"""Opens an exported classifier."""

from pathlib import Path
from typing import Any

from transformer.checkpoint.device import inference_device
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.classifier.decoding.labels import ClassificationParams
from transformer.families.classifier.decoding.with_torch import TorchClassifier


def open_predictor(
    task: Task, trained: Path, vocab: Path, pretokenizer: Path, decoding: dict[str, Any], device: str
) -> TorchClassifier:
    """Open a classifier. decoding: from config.json in the folder `pretokenizer`. Raises UserError."""
    params = validate(ClassificationParams, decoding, where=pretokenizer / "config.json", prefix="decoding")
    return TorchClassifier(trained, vocab, pretokenizer, params, inference_device(device), task.classes)
