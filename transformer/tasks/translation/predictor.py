"""Opening an exported translation model."""

from pathlib import Path
from typing import Any

import torch

from transformer.decoding.seq2seq.config import DecodingParams
from transformer.export.bundle import MODEL, VOCAB
from transformer.params.validation import validate
from transformer.tasks.translation.inference import Translator


def open_predictor(bundle: Path, config: dict[str, Any], device: torch.device) -> Translator:
    """A translator from a bundle whose config.json holds `config`."""
    decoding = validate(DecodingParams, config.get("decoding", {}), where=bundle / "config.json", prefix="decoding")
    return Translator(bundle / MODEL, bundle / VOCAB, bundle, decoding, device)
