"""Opening of exported language models."""

from pathlib import Path
from typing import Any

from transformer.checkpoint.device import inference_device
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.with_torch import TorchLanguageModel


def open_predictor(
    task: Task, trained: Path, vocab: Path, pretokenizer: Path, decoding: dict[str, Any], device: str
) -> TorchLanguageModel:
    """Open an exported language model. decoding: from config.json in the folder `pretokenizer`. Raises UserError."""
    params = validate(AnswerParams, decoding, where=pretokenizer / "config.json", prefix="decoding")
    return TorchLanguageModel(trained, vocab, pretokenizer, params, inference_device(device))
