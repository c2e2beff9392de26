"""Exported classifiers: networks in PyTorch, and n-gram models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.core.task import Task
from transformer.core.validation import validate
from transformer.data.store import Ids
from transformer.data.vocabulary import Vocabulary, read_vocabularies, require_size
from transformer.families.classifier.classifier import ClassificationParams, Classifier
from transformer.families.classifier.interface import ClassifierConfig, ClassifierModel, NgramParams
from transformer.families.classifier.network import build_model
from transformer.families.classifier.ngrams import Contribution, NgramModel, lead_of
from transformer.nn.device import in_turns, inference_device
from transformer.nn.trained import load_config, load_model, read_weights, unfit


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


def read_ngrams(trained: Path, config: ClassifierConfig) -> NgramModel:
    """Read the model in the folder `trained`. Raises UserError if its file is missing, corrupt or mismatched."""
    state = {name: tensor.numpy() for name, tensor in read_weights(trained).items()}
    try:
        return NgramModel.from_state(config, state)
    except RuntimeError as error:
        raise unfit(trained, error) from error


class NgramClassifier(Classifier):
    """A classifier with access to its n-gram weights."""

    def __init__(
        self,
        model: NgramModel,
        vocabulary: Vocabulary,
        pretokenizer: Path,
        params: ClassificationParams,
        classes: Sequence[str],
    ) -> None:
        """Other arguments as in `Classifier`."""
        super().__init__(model, vocabulary, pretokenizer, params, classes)
        self.model = model

    def reasons(self, text: str, label: str, count: int) -> list[tuple[str, float]]:
        """Return the at most `count` n-grams of a text with the largest contributions to the label.

        The contribution is to the margin of the label's logit over the mean of the others.
        """
        number = self.classes.index(label)
        found = self.model.contributions(self.encode([text])[0])
        leads = [(self.named(each), lead_of(each.weights, number)) for each in found]
        return sorted(leads, key=lambda pair: -abs(pair[1]))[:count]

    def named(self, contribution: Contribution) -> str:
        """Return an n-gram as text."""
        return " ".join(self.vocabulary.entries(contribution.ids))


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
    model = load_model(trained, lambda: build_model(config))
    return TorchClassifier(model.to(device), vocabulary, pretokenizer, params, classes)


def open_exported(task: Task, bundle: Path, decoding: dict[str, Any], device: str) -> TrainedClassifier:
    """Open an exported classifier. decoding: from its config.json. Raises UserError."""
    params = validate(ClassificationParams, decoding, where=bundle / "config.json", prefix="decoding")
    return open_trained(bundle / "model", bundle / "vocab", bundle, params, inference_device(device), task.classes)
