"""The parameters of the Transformer-encoder classifier, and what rebuilds a model of either kind."""

from typing import Annotated, Literal

from pydantic import Field

from transformer.nn.classifier.recurrent_config import RecurrentClassifierParams
from transformer.nn.config import TransformerParams
from transformer.params.schema import Section


class ClassifierParams(TransformerParams):
    """`model` of a classification task, kind `transformer`."""

    layers: int = Field(ge=1)
    pooling: Literal["first", "mean", "max"]
    """How token states become one state: that of the first token, or the mean or maximum over real tokens."""


AnyClassifierParams = Annotated[ClassifierParams | RecurrentClassifierParams, Field(discriminator="kind")]
"""`model` of a classification task."""


class ClassifierConfig(Section):
    """All that rebuilds a model: config.json holds just this and the weights fit it."""

    model: AnyClassifierParams
    size: int = Field(ge=1)
    """Entries of the vocabulary."""
    pad_id: int = Field(ge=0)
    classes: int = Field(ge=2)
