"""The parameters of the encoder-decoder Transformer."""

from pydantic import Field

from transformer.nn.config import TransformerParams
from transformer.params.schema import Section


class Seq2SeqParams(TransformerParams):
    """`model` of a translation task."""

    encoder_layers: int = Field(ge=1)
    decoder_layers: int = Field(ge=1)


class Seq2SeqConfig(Section):
    """All that rebuilds a model: config.json holds just this and the weights fit it."""

    model: Seq2SeqParams
    source_size: int = Field(ge=1)
    """Entries of the source vocabulary."""
    target_size: int = Field(ge=1)
    source_pad_id: int = Field(ge=0)
    target_pad_id: int = Field(ge=0)
