"""The parameters of the classifiers, and the configuration to rebuild either kind."""

from typing import Annotated, Literal

from pydantic import Field

from transformer.core.schema import Section
from transformer.nn.config import RecurrentLayerParams, TransformerParams


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


AnyClassifierParams = Annotated[ClassifierParams | RecurrentClassifierParams, Field(discriminator="kind")]
"""`model` of a classification task."""


class ClassifierConfig(Section):
    """Everything needed to rebuild a model besides its weights: the content of config.json."""

    model: AnyClassifierParams
    size: int = Field(ge=1)
    """Size of the vocabulary."""
    pad_id: int = Field(ge=0)
    classes: int = Field(ge=2)
