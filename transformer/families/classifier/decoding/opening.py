"""Opening of trained and exported classifiers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoint.device import inference_device
from transformer.checkpoint.trained import load_config, load_weights
from transformer.core.errors import UserError
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.encoded.vocabulary import read_vocabularies, require_size
from transformer.families.classifier.decoding.labels import ClassificationParams
from transformer.families.classifier.decoding.with_ngrams import NgramClassifier, read_ngrams
from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.nn.config import ClassifierConfig, NgramParams
from transformer.families.classifier.nn.model import build_model

TrainedClassifier = TorchClassifier | NgramClassifier


def open_trained(
    trained: Path,
    vocab: Path,
    pretokenizer: Path,
    params: ClassificationParams,
    device: torch.device,
    classes: Sequence[str],
) -> TrainedClassifier:
    """Open a classifier of any kind. trained, vocab: outputs of train and build_vocab; classes: their names;
    pretokenizer: the folder with `pretokenizer.json`.
    Raises UserError if a file is missing or broken.
    """
    config = load_config(trained, ClassifierConfig)
    if config.classes != len(classes):
        raise UserError(f"{trained} has {config.classes} classes, not {len(classes)}: train it again")
    vocabulary = read_vocabularies(vocab, "text")["text"]
    require_size(vocabulary, config.size, vocab)
    if isinstance(config.model, NgramParams):
        return NgramClassifier(read_ngrams(trained, config), vocabulary, pretokenizer, params, classes)
    model = build_model(config)
    load_weights(trained, model)
    return TorchClassifier(model.to(device), vocabulary, pretokenizer, params, classes)


def open_predictor(
    task: Task, trained: Path, vocab: Path, pretokenizer: Path, decoding: dict[str, Any], device: str
) -> TrainedClassifier:
    """Open an exported classifier. decoding: from config.json in the folder `pretokenizer`. Raises UserError."""
    params = validate(ClassificationParams, decoding, where=pretokenizer / "config.json", prefix="decoding")
    return open_trained(trained, vocab, pretokenizer, params, inference_device(device), task.classes)
