"""The parameters of the Transformer-encoder classifier, and what rebuilds a model of either kind."""

from typing import Annotated, Literal

from pydantic import Field

from transformer.core.schema import Section
from transformer.families.classifier.nn.recurrent_config import RecurrentClassifierParams
from transformer.nn.config import TransformerParams


class ClassifierParams(TransformerParams):
    """`model` of a classification task, kind `transformer`."""

    layers: int = Field(ge=1)
    pooling: Literal["first", "cls", "mean", "max", "attention"]
    """How token states become one state: that of the text's first token, of a [CLS] token put before it (Devlin et al.
    2019), the mean, maximum or a trained attention (Yang et al. 2016, eqs. 5-7) over real tokens."""


AnyClassifierParams = Annotated[ClassifierParams | RecurrentClassifierParams, Field(discriminator="kind")]
"""`model` of a classification task."""


class ClassifierConfig(Section):
    """All that rebuilds a model: config.json holds just this and the weights fit it."""

    model: AnyClassifierParams
    size: int = Field(ge=1)
    """Entries of the vocabulary."""
    pad_id: int = Field(ge=0)
    classes: int = Field(ge=2)
