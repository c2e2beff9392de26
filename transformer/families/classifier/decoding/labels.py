"""Computes class probabilities, and classifies raw texts with a trained model."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from transformer.checkpoint.trained import load_config, load_weights
from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.schema import Section
from transformer.encoded.batching import Ids, pad, sorted_batches
from transformer.encoded.vocabulary import clip, read_vocabularies, require_size
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.model import build_model
from transformer.text.clean import given_texts, one_line
from transformer.text.pretokenize import PreTokenizer, read_pretokenizers


def class_probabilities(
    model: ClassifierModel, sequences: Sequence[Ids], *, batch_size: int, observer: Observer
) -> NDArray[np.float64]:
    """The softmax of each text's logits, (N, K), in the order of `sequences`.

    sequences: ids, none longer than the model's positions. Rounded to 6 decimals: beyond that, results depend on the
    batch size, which changes the order of sums.
    """
    device = next(model.parameters()).device
    result = np.zeros((len(sequences), model.config.classes))
    batches = sorted_batches(np.array([len(sequence) for sequence in sequences]), batch_size)
    model.eval()
    with torch.inference_mode():
        for rows in observer.progress(batches, total=len(batches), what="classify"):
            logits = model(pad([sequences[row] for row in rows], model.config.pad_id).to(device))
            result[rows] = logits.cpu().double().softmax(dim=-1).numpy()
    return result.round(6)


class ClassificationParams(Section):
    """How texts are classified."""

    batch_size: int = Field(ge=1)
    """Texts per batch."""


class AnsweringParams(ClassificationParams, extra="ignore"):
    """The part of `evaluate` that a model needs to classify texts, without how answers are scored."""


class Prediction(NamedTuple):
    """The predicted class of one text."""

    label: str
    """The name of a class."""
    probability: float
    """The probability of that class."""


class Classifier:
    """A classifier with everything needed to classify raw text."""

    family = "classifier"

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
        self.classes = tuple(classes)
        self.model = build_model(config)
        load_weights(trained, self.model)
        self.model.to(device).eval()
        self.vocabulary = read_vocabularies(vocab, "text")["text"]
        require_size(self.vocabulary, config.size, vocab)
        self._pretokenize = PreTokenizer(read_pretokenizers(pretokenizer, "text")["text"])
        self._params = params

    def classify(self, texts: Iterable[str]) -> list[Prediction]:
        """The label of each text. Texts longer than the model's positions are cut.

        Raises TypeError if `texts` is not an iterable of strings.
        """
        return [prediction(row, self.classes) for row in self.probabilities(self.encode(texts), Observer())]

    def table(self, texts: Iterable[str]) -> dict[str, list[str] | list[float]]:
        """The predictions as columns, for a data frame."""
        answers = self.classify(texts)
        return {
            "label": [answer.label for answer in answers],
            "probability": [answer.probability for answer in answers],
        }

    def encode(self, texts: Iterable[str]) -> list[Ids]:
        """The ids of raw texts, cut to the model's positions."""
        limit = self.model.config.model.max_length
        return [clip(ids, limit) for ids in self.vocabulary.encode(self.pretokenize(texts))]

    def pretokenize(self, texts: Iterable[str]) -> list[str]:
        """The texts as the vocabulary is given them: tokens separated by spaces."""
        return self._pretokenize([one_line(text) for text in given_texts(texts)])

    def probabilities(self, sequences: Sequence[Ids], observer: Observer) -> NDArray[np.float64]:
        """Per encoded text the probability of class 1, (N,); with more than two classes, of each class, (N, K)."""
        found = class_probabilities(self.model, sequences, batch_size=self._params.batch_size, observer=observer)
        return found[:, 1] if len(self.classes) == 2 else found


def prediction(given: "float | NDArray[np.float64]", classes: Sequence[str]) -> Prediction:
    """The prediction for the probability of class 1 of two or, with more classes, for those of all classes, (K,)."""
    if isinstance(given, np.ndarray) and given.ndim:
        return Prediction(classes[int(given.argmax())], round(float(given.max()), 6))
    probability = float(given)
    return Prediction(classes[probability >= 0.5], round(max(probability, 1 - probability), 6))
