"""The parameters of the encoder-decoder Transformer, and what rebuilds a model of either kind."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section
from transformer.families.seq2seq.nn.recurrent_config import RecurrentParams
from transformer.nn.config import TransformerParams


class Seq2SeqParams(TransformerParams):
    """`model` of a translation task, kind `transformer`."""

    encoder_layers: int = Field(ge=1)
    decoder_layers: int = Field(ge=1)
    tie_embeddings: Literal["none", "target", "all"]
    """Share the target embedding with the output layer (Press and Wolf 2017), or both with the source embedding too
    (section 3.4), which needs one vocabulary for both languages."""


AnySeq2SeqParams = Annotated[Seq2SeqParams | RecurrentParams, Field(discriminator="kind")]
"""`model` of a translation task."""


class Seq2SeqConfig(Section):
    """All that rebuilds a model: config.json holds just this and the weights fit it."""

    model: AnySeq2SeqParams
    source_size: int = Field(ge=1)
    """Entries of the source vocabulary."""
    target_size: int = Field(ge=1)
    source_pad_id: int = Field(ge=0)
    target_pad_id: int = Field(ge=0)

    @model_validator(mode="after")
    def _tied_tables_have_one_size(self) -> Self:
        tied = isinstance(self.model, Seq2SeqParams) and self.model.tie_embeddings == "all"
        if tied and self.source_size != self.target_size:
            raise ValueError("tie_embeddings `all` needs one vocabulary for both languages: set vocab.joint to true")
        return self
