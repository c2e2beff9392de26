"""The parameters of the classifiers, and the configuration to rebuild any kind."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transformer.core.schema import Section
from transformer.families.classifier.nn.ngrams import LONGEST
from transformer.nn.config import RecurrentLayerParams, TransformerParams


class NgramParams(Section):
    """`model` of a classification task, kind `ngrams`. Of `train`, it reads `seed` and `class_weights`."""

    kind: Literal["ngrams"]
    """N-grams weighted by naive Bayes and a regression (Wang and Manning 2012)."""
    max_length: ClassVar[int] = 2**31 - 1
    """Tokens that are read of a text: all."""
    ngrams: int = Field(ge=1, le=LONGEST)
    """The n-grams of 1 to this many tokens that occur in a text add to its logits."""
    features: int = Field(ge=1)
    """The largest number of n-grams: those in the most training texts."""
    strength: float = Field(gt=0)
    """The inverse strength of the regularization of their weights, as scikit-learn's `C`."""
    vectors: int = Field(ge=0)
    """Dimensions of a text's vector, which the regression reads beside the n-grams: it predicts them (Li et al. 2016).
    Found in the training texts and those without a label (`download.unsupervised`); 0 for none."""
    vector_ngrams: int = Field(ge=1)
    """The largest number of n-grams with a vector, in 8 bits: those in the most texts."""
    vector_strength: float = Field(gt=0)
    """As `strength`, of the weights along the vectors."""


class RecurrentClassifierParams(RecurrentLayerParams):
    """`model` of a classification task, kind `recurrent`."""

    layers: int = Field(ge=1)
    """Encoder layers."""
    pooling: Literal["last", "mean", "max"]
    """How token states become one state: the last one of each direction, or the mean or maximum over real tokens."""


class ClassifierParams(TransformerParams):
    """`model` of a classification task, kind `transformer`."""

    layers: int = Field(ge=1)
    """Encoder layers."""
    pooling: Literal["first", "cls", "mean", "max", "attention"]
    """How token states become one state: that of the first token, of a prepended [CLS] token (Devlin et al. 2019), or
    the mean, the maximum or a trained attention (Yang et al. 2016, eqs. 5-7) over real tokens."""


AnyClassifierParams = Annotated[ClassifierParams | RecurrentClassifierParams | NgramParams, Field(discriminator="kind")]
"""`model` of a classification task."""


class ClassifierConfig(Section):
    """Everything needed to rebuild a model besides its weights: the content of config.json."""

    model: AnyClassifierParams
    size: int = Field(ge=1)
    """Size of the vocabulary."""
    pad_id: int = Field(ge=0)
    classes: int = Field(ge=2)
