"""The classifier that a configuration describes."""

from transformer.nn.classifier.config import ClassifierConfig
from transformer.nn.classifier.interface import ClassifierModel
from transformer.nn.classifier.model import TransformerClassifier
from transformer.nn.classifier.recurrent import RecurrentClassifier
from transformer.nn.classifier.recurrent_config import RecurrentClassifierParams


def build_model(config: ClassifierConfig) -> ClassifierModel:
    """A fresh model, its weights drawn from torch's generator."""
    if isinstance(config.model, RecurrentClassifierParams):
        return RecurrentClassifier(config)
    return TransformerClassifier(config)
