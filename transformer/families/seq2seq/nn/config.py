"""Parameters of the translation models, and the configuration to rebuild either kind."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section
from transformer.nn.config import RecurrentLayerParams, TransformerParams


class RecurrentParams(RecurrentLayerParams):
    """`model` of a translation task, kind `recurrent`. `bidirectional` refers to the encoder."""

    attention: Literal[
        "none",
        "bahdanau",
        "luong_dot",
        "luong_general",
        "luong_concat",
        "luong_scaled_dot",
        "luong_scaled_general",
    ]
    """One fixed context vector (Cho et al. 2014), additive (Bahdanau et al. 2015), or a score of Luong et al. 2015.
    `scaled`: the product is divided by sqrt(hidden). Without it, the softmax of wide states saturates."""
    local_window: int | None = Field(ge=1)
    """D of Luong's local-p attention: attend to this many positions on each side of the predicted one; null: to all."""
    encoder_layers: int = Field(ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(ge=1)
    """Number of decoder layers."""
    teacher_forcing: float = Field(gt=0, le=1)
    """Probability in training that a step reads the reference token instead of the model's own (argmax)."""

    @model_validator(mode="after")
    def _local_is_luong(self) -> Self:
        if self.local_window is not None and not self.attention.startswith("luong"):
            raise ValueError(
                f"local_window ({self.local_window}) needs a Luong attention, not `{self.attention}`: set it to null"
            )
        return self

    @model_validator(mode="after")
    def _dot_needs_equal_widths(self) -> Self:
        if self.attention.endswith("dot") and self.bidirectional:
            raise ValueError(
                f"attention `{self.attention}` multiplies states of one width, and those of a bidirectional encoder are"
                f" twice as wide: set bidirectional to false, or use `{self.attention.replace('dot', 'general')}`"
            )
        return self


class Seq2SeqParams(TransformerParams):
    """`model` of a translation task, kind `transformer`."""

    encoder_layers: int = Field(ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(ge=1)
    """Number of decoder layers."""
    tie_embeddings: Literal["none", "target", "all"]
    """Tie the target embedding to the output layer (Press and Wolf 2017), or both to the source embedding too (section
    3.4), which needs one vocabulary for both languages."""


AnySeq2SeqParams = Annotated[Seq2SeqParams | RecurrentParams, Field(discriminator="kind")]
"""`model` of a translation task."""


class Seq2SeqConfig(Section):
    """Everything needed to rebuild a model except its weights; stored as config.json."""

    model: AnySeq2SeqParams
    source_size: int = Field(ge=1)
    """Size of the source vocabulary."""
    target_size: int = Field(ge=1)
    source_pad_id: int = Field(ge=0)
    target_pad_id: int = Field(ge=0)

    @model_validator(mode="after")
    def _tied_tables_have_one_size(self) -> Self:
        tied = isinstance(self.model, Seq2SeqParams) and self.model.tie_embeddings == "all"
        if tied and self.source_size != self.target_size:
            raise ValueError("tie_embeddings `all` needs one vocabulary for both languages: set vocab.joint to true")
        return self
