"""Classifying with a trained model."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from transformer.checkpoint.trained import load_config, load_weights
from transformer.core.observer import Observer
from transformer.core.schema import Section
from transformer.core.scoring import ScoringParams
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import clip, read_vocabularies, require_size
from transformer.families.classifier.decoding.probabilities import class_probabilities
from transformer.families.classifier.nn.build import build_model
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.tasks.sentiment import LABELS
from transformer.text.clean import given_texts, one_line
from transformer.text.pretokenize import PreTokenizer, read_pretokenizers


class ClassificationParams(Section):
    """How reviews are classified."""

    batch_size: int = Field(ge=1)
    """Reviews that are read together."""


class EvaluateParams(ClassificationParams, ScoringParams):
    """`sentiment.evaluate`: how reviews are classified, and the answers judged."""


class Prediction(NamedTuple):
    """The answer for one text."""

    label: str
    """`negative` or `positive`."""
    probability: float
    """Of that label, 0.5 to 1."""


class Reviewer:
    """A sentiment model with all that it takes to classify raw text."""

    task = "sentiment"

    def __init__(
        self, trained: Path, vocab: Path, pretokenizer: Path, params: ClassificationParams, device: torch.device
    ) -> None:
        """trained, vocab: what train and build_vocab wrote; pretokenizer: the folder of `pretokenizer.json`.

        Raises UserError when one of them is missing or broken.
        """
        config = load_config(trained, ClassifierConfig)
        self.model = build_model(config)
        load_weights(trained, self.model)
        self.model.to(device).eval()
        self.vocabulary = read_vocabularies(vocab, "text")["text"]
        require_size(self.vocabulary, config.size, vocab)
        self._pretokenize = PreTokenizer(read_pretokenizers(pretokenizer, "text")["text"])
        self._params = params

    def classify(self, texts: Iterable[str]) -> list[Prediction]:
        """The label of each text. Texts longer than the model's positions are cut.

        Raises TypeError where `texts` are not texts.
        """
        return [prediction(value) for value in self.positive(self.encode(texts), Observer())]

    def encode(self, texts: Iterable[str]) -> list[Ids]:
        """The ids of raw texts, cut to the model's positions."""
        tokens = self._pretokenize([one_line(text) for text in given_texts(texts)])
        limit = self.model.config.model.max_length
        return [clip(ids, limit) for ids in self.vocabulary.encode(tokens)]

    def positive(self, sequences: Sequence[Ids], observer: Observer) -> NDArray[np.float64]:
        """The probability of the positive class for each encoded text, (N,)."""
        probabilities = class_probabilities(
            self.model, sequences, batch_size=self._params.batch_size, observer=observer
        )
        return probabilities[:, 1]


def prediction(positive: float) -> Prediction:
    """The answer at a probability of the positive class."""
    probability = float(positive)
    return Prediction(LABELS[probability >= 0.5], round(max(probability, 1 - probability), 6))
