"""The parameters of the encoder-decoder Transformer, and what rebuilds a model of either kind."""

from typing import Annotated

from pydantic import Field

from transformer.nn.config import TransformerParams
from transformer.nn.seq2seq.recurrent_config import RecurrentParams
from transformer.params.schema import Section


class Seq2SeqParams(TransformerParams):
    """`model` of a translation task, kind `transformer`."""

    encoder_layers: int = Field(ge=1)
    decoder_layers: int = Field(ge=1)


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
