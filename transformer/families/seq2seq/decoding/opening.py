"""Opening of exported translation models."""

from pathlib import Path
from typing import Any

from transformer.checkpoint.device import inference_device
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator


def open_predictor(
    task: Task, trained: Path, vocab: Path, pretokenizer: Path, decoding: dict[str, Any], device: str
) -> TorchTranslator:
    """Open an exported translator. decoding: from config.json in the folder `pretokenizer`. Raises UserError."""
    params = validate(DecodingParams, decoding, where=pretokenizer / "config.json", prefix="decoding")
    return TorchTranslator(trained, vocab, pretokenizer, params, inference_device(device))
