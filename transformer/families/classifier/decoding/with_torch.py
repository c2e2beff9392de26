"""Classification with PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.checkpoint.device import in_turns
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier
from transformer.families.classifier.nn.interface import ClassifierModel


class TorchScorer:
    """A `Scorer` that runs the network on its device."""

    def __init__(self, model: ClassifierModel) -> None:
        self._model = model.eval()
        self.positions, self.pad_id, self.classes = (
            model.config.model.max_length,
            model.config.pad_id,
            model.config.classes,
        )

    @in_turns
    def logits(self, token_ids: Ids) -> NDArray[np.floating[Any]]:
        """Return the logits (B, K) of token_ids (B, S), padded at the end."""
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            logits: NDArray[np.floating[Any]] = self._model(torch.from_numpy(token_ids).to(device)).cpu().numpy()
        return logits


class TorchClassifier(Classifier):
    """A classifier with access to its network."""

    def __init__(
        self,
        model: ClassifierModel,
        vocabulary: Vocabulary,
        pretokenizer: Path,
        params: ClassificationParams,
        classes: Sequence[str],
    ) -> None:
        """model: on its device; other arguments as in `Classifier`."""
        super().__init__(TorchScorer(model), vocabulary, pretokenizer, params, classes)
        self.model = model
