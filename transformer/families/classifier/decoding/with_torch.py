"""Classifies with the PyTorch model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.checkpoint.device import in_turns
from transformer.checkpoint.trained import load_config, load_weights
from transformer.core.errors import UserError
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import read_vocabularies, require_size
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.model import build_model
from transformer.families.classifier.nn.wide import read_wide


class TorchScorer:
    """A classifier's network on its device, as a `Scorer`."""

    def __init__(self, model: ClassifierModel) -> None:
        self._model = model.eval()
        self.positions, self.pad_id, self.classes = (
            model.config.model.max_length,
            model.config.pad_id,
            model.config.classes,
        )

    @in_turns
    def logits(self, token_ids: Ids) -> NDArray[np.floating[Any]]:
        """As `Scorer.logits`."""
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            logits: NDArray[np.floating[Any]] = self._model(torch.from_numpy(token_ids).to(device)).cpu().numpy()
        return logits


class TorchClassifier(Classifier):
    """A classifier whose network is at hand."""

    def __init__(
        self,
        trained: Path,
        vocab: Path,
        pretokenizer: Path,
        params: ClassificationParams,
        device: torch.device,
        classes: Sequence[str],
    ) -> None:
        """trained, vocab: the outputs of train and build_vocab; pretokenizer: the folder of `pretokenizer.json`.

        classes: their names. Raises UserError when one of the files is missing or broken.
        """
        config = load_config(trained, ClassifierConfig)
        if config.classes != len(classes):
            raise UserError(f"{trained} has {config.classes} classes, not {len(classes)}: train it again")
        self.model = build_model(config)
        load_weights(trained, self.model)
        self.model.to(device)
        vocabulary = read_vocabularies(vocab, "text")["text"]
        require_size(vocabulary, config.size, vocab)
        longest, vectors = config.model.wide_ngrams, config.model.wide_vectors
        wide = read_wide(trained, longest=longest, vectors=vectors, size=config.size, classes=config.classes)
        super().__init__(TorchScorer(self.model), vocabulary, pretokenizer, params, classes, wide)
