"""Interface of neural classifiers to training, evaluation and inference."""

from abc import abstractmethod

from torch import Tensor

from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams, RecurrentClassifierParams
from transformer.nn.model import Model


class ClassifierModel(Model):
    """Maps token ids to class logits."""

    config: ClassifierConfig

    @property
    def params(self) -> ClassifierParams | RecurrentClassifierParams:
        """Parameters of the network."""
        assert isinstance(self.config.model, ClassifierParams | RecurrentClassifierParams)
        return self.config.model

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the logits (B, K) of token_ids (B, S). packed: skip computation on padding, if the model can."""
