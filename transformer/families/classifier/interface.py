"""Configuration of classifiers, and their interface to training, evaluation and inference."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from transformer.core.validation import Section
from transformer.nn.config import MOST_LAYERS, RecurrentLayerParams, TransformerParams
from transformer.nn.layers import Model

LONGEST = 3
"""Maximum n: keys of longer n-grams over large vocabularies would not fit into 64 bits."""


class NgramParams(Section):
    """`model` of a classification task, kind `ngrams`. It uses only `seed` and `class_weights` of `train`."""

    kind: Literal["ngrams"]
    """Logistic regression on n-grams weighted by naive Bayes (Wang and Manning 2012)."""
    max_length: ClassVar[int] = 2**31 - 1
    """Tokens read per text: all."""
    ngrams: int = Field(ge=1, le=LONGEST)
    """Largest n: n-grams of 1 to this many tokens are features."""
    features: int = Field(ge=1)
    """Maximum number of n-grams: those in the most training texts."""
    strength: float = Field(gt=0)
    """Inverse regularization strength of their weights, scikit-learn's `C`."""
    vectors: int = Field(ge=0)
    """Dimensions of the document vector, a further input of the regression, trained to predict the text's n-grams (Li
    et al. 2016) on training texts and unlabelled ones (`download.unsupervised`); 0 for none."""
    vector_ngrams: int = Field(ge=1)
    """Maximum number of n-grams with a vector, stored in 8 bits: those in the most texts."""
    vector_strength: float = Field(gt=0)
    """Inverse regularization strength of the document vector's weights, like `strength`."""


class RecurrentClassifierParams(RecurrentLayerParams):
    """`model` of a classification task, kind `recurrent`."""

    layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of encoder layers."""
    pooling: Literal["last", "mean", "max"]
    """How token states are pooled: the last state of each direction, or the mean or maximum over real tokens."""


class ClassifierParams(TransformerParams):
    """`model` of a classification task, kind `transformer`."""

    layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of encoder layers."""
    pooling: Literal["first", "cls", "mean", "max", "attention"]
    """How token states are pooled: the state of the first token or of a prepended [CLS] token (Devlin et al. 2019), or
    the mean, the maximum or a learned attention (Yang et al. 2016, eqs. 5-7) over real tokens."""


AnyClassifierParams = Annotated[ClassifierParams | RecurrentClassifierParams | NgramParams, Field(discriminator="kind")]
"""`model` of a classification task."""


class ClassifierConfig(Section):
    """Everything needed to rebuild a model except its weights; stored as config.json."""

    model: AnyClassifierParams
    size: int = Field(ge=1)
    """Vocabulary size."""
    pad_id: int = Field(ge=0)
    classes: int = Field(ge=2)


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
