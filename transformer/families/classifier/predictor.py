"""Opening an exported sentiment model."""

from pathlib import Path
from typing import Any

import torch

from transformer.core.validation import validate
from transformer.export.bundle import MODEL, VOCAB
from transformer.families.classifier.decoding.labels import ClassificationParams, Reviewer


def open_predictor(bundle: Path, config: dict[str, Any], device: torch.device) -> Reviewer:
    """A reviewer from a bundle whose config.json holds `config`."""
    params = validate(ClassificationParams, config.get("decoding", {}), where=bundle / "config.json", prefix="decoding")
    return Reviewer(bundle / MODEL, bundle / VOCAB, bundle, params, device)
