"""The interface of a classifier's network, of either kind, to training, evaluation and inference."""

from abc import abstractmethod

from torch import Tensor

from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams, RecurrentClassifierParams
from transformer.nn.model import Model


class ClassifierModel(Model):
    """Token ids in, class logits out."""

    config: ClassifierConfig

    @property
    def params(self) -> ClassifierParams | RecurrentClassifierParams:
        """Those of the network."""
        assert isinstance(self.config.model, ClassifierParams | RecurrentClassifierParams)
        return self.config.model

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """token_ids: (B, S). Returns logits (B, K). packed: skip the computation of padding, if the model can."""
