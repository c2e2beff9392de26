"""The classifier that a configuration describes."""

from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.model import TransformerClassifier
from transformer.families.classifier.nn.recurrent import RecurrentClassifier
from transformer.families.classifier.nn.recurrent_config import RecurrentClassifierParams


def build_model(config: ClassifierConfig) -> ClassifierModel:
    """A fresh model, its weights drawn from torch's generator."""
    if isinstance(config.model, RecurrentClassifierParams):
        return RecurrentClassifier(config)
    return TransformerClassifier(config)
