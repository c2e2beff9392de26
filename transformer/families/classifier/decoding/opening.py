"""Opens an exported classifier."""

from pathlib import Path
from typing import Any

import torch

from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.classifier.decoding.labels import ClassificationParams
from transformer.families.classifier.decoding.with_torch import TorchClassifier


def open_predictor(
    task: Task, trained: Path, vocab: Path, pretokenizer: Path, decoding: dict[str, Any], device: torch.device
) -> TorchClassifier:
    """Open a classifier. decoding: from config.json in the folder `pretokenizer`. Raises UserError."""
    params = validate(ClassificationParams, decoding, where=pretokenizer / "config.json", prefix="decoding")
    return TorchClassifier(trained, vocab, pretokenizer, params, device, task.classes)
