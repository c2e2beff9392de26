"""The parameters of the classifiers, and the configuration to rebuild either kind."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from transformer.core.schema import Section
from transformer.families.classifier.nn.ngrams import LONGEST
from transformer.nn.config import RecurrentLayerParams, TransformerParams


class WideParams(Section):
    """The wide branch beside a network, of either kind. Models from before it have none."""

    wide_ngrams: int = Field(default=0, ge=0, le=LONGEST)
    """Add the logits of the n-grams of 1 to this many tokens that occur in the text (the wide branch); 0 for none."""
    wide_features: int = Field(default=800_000, ge=1)
    """The largest number of n-grams in the wide branch: those in the most training texts."""
    wide_vectors: int = Field(default=0, ge=0)
    """Dimensions of a text's vector, along which the wide branch has a second regression: the vectors of texts predict
    their n-grams (Li et al. 2016). Found in the training texts and those without a label (`download.unsupervised`); 0
    for none."""
    wide_vector_ngrams: int = Field(default=100_000, ge=1)
    """The largest number of n-grams with a vector, in 8 bits: those in the most texts."""

    @model_validator(mode="before")
    @classmethod
    def _directions_are_gone(cls, leaves: Any) -> Any:
        if isinstance(leaves, dict) and "wide_latent" in leaves:
            raise ValueError(
                "model.wide_latent is of an older version: set model.wide_vectors instead, and train again"
            )
        return leaves

    @model_validator(mode="after")
    def _vectors_are_of_ngrams(self) -> Self:
        if self.wide_vectors and not self.wide_ngrams:
            raise ValueError("model.wide_vectors must be 0 where model.wide_ngrams is 0: it needs n-grams")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_off(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A model without the branch, or without vectors, has the config.json that it had before there were any."""
        leaves: dict[str, Any] = serialize(self)
        absent = "wide_" if not self.wide_ngrams else "wide_vector" if not self.wide_vectors else None
        return {name: leaves[name] for name in leaves if absent is None or not name.startswith(absent)}


class RecurrentClassifierParams(WideParams, RecurrentLayerParams):
    """`model` of a classification task, kind `recurrent`."""

    layers: int = Field(ge=1)
    """Encoder layers."""
    pooling: Literal["last", "mean", "max"]
    """How token states become one state: the last one of each direction, or the mean or maximum over real tokens."""


class ClassifierParams(WideParams, TransformerParams):
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
