"""Opening an exported translation model."""

from pathlib import Path
from typing import Any

import torch

from transformer.core.validation import validate
from transformer.export.bundle import MODEL, VOCAB
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.translator import Translator


def open_predictor(bundle: Path, config: dict[str, Any], device: torch.device) -> Translator:
    """A translator from a bundle whose config.json holds `config`."""
    decoding = validate(DecodingParams, config.get("decoding", {}), where=bundle / "config.json", prefix="decoding")
    return Translator(bundle / MODEL, bundle / VOCAB, bundle, decoding, device)
