"""Configuration of translation models, and their interface to training, evaluation and decoding."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transformer.core.validation import Section
from transformer.nn.config import MOST_LAYERS, RecurrentLayerParams, TransformerParams
from transformer.nn.evolved import FIRST_HEADS
from transformer.nn.layers import Model


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
    encoder_layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of encoder layers."""
    decoder_layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of decoder layers."""
    teacher_forcing: float = Field(gt=0, le=1)
    """Probability in training that a step reads the reference token instead of the model's own (argmax)."""

    @model_validator(mode="after")
    def _attention_fits(self) -> Self:
        name = self.attention
        if self.local_window is not None and not name.startswith("luong"):
            raise ValueError(f"local_window ({self.local_window}) needs a Luong attention, not `{name}`: use null")
        if name.endswith("dot") and self.bidirectional:
            raise ValueError(f"attention `{name}` needs states of one width: set bidirectional to false")
        return self


class Seq2SeqParams(TransformerParams):
    """`model` of a translation task, kind `transformer`."""

    layer: Literal["standard", "evolved"] = "standard"  # in bundles of earlier versions
    """The paper's layers, or the cells of the Evolved Transformer (So et al. 2019), each as deep as two layers; its
    decoder has 16 heads, at least, in its first self-attention."""
    encoder_layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of encoder layers."""
    decoder_layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of decoder layers."""
    tie_embeddings: Literal["none", "target", "all"]
    """Tie the target embedding to the output layer (Press and Wolf 2017), or both to the source embedding too (section
    3.4), which needs one vocabulary for both languages."""

    @model_validator(mode="after")
    def _cells_fit(self) -> Self:
        if self.layer == "evolved" and (self.d_model % FIRST_HEADS or self.positions == "rotary"):
            raise ValueError(
                f"layer `evolved` needs a d_model that is a multiple of {FIRST_HEADS}, not {self.d_model}, and"
                " positions that are added to the embeddings"
            )
        return self


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


class Cache(Protocol):
    """State of a model between generation steps."""

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""


class Seq2SeqModel(Model):
    """Maps source and target ids to the states before each next target token, which `output` maps to logits."""

    config: Seq2SeqConfig

    output: nn.Linear
    """Maps states (..., C) to logits (..., V)."""

    @abstractmethod
    def token_tables(self) -> Sequence[nn.Embedding]:
        """Return the embeddings of source and target tokens; the same one twice if they share it."""

    @abstractmethod
    def forward(self, source_ids: Tensor, target_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) for source_ids (B, S) and the target so far, target_ids (B, T).

        packed: return the states (N, C) of all positions but padding, in the order of target_ids[target_ids !=
        padding], and skip computation on padding if the model can. `output` maps states to logits (..., V).
        """

    @abstractmethod
    def start(self, source_ids: Tensor) -> Cache:
        """Encode source_ids (B, S). Returns the cache for `step`."""

    @abstractmethod
    def step(self, target_ids: Tensor, cache: Any) -> Tensor:
        """Append one target token per row, target_ids (B,), to the cache from `start`. Returns the states (B, C)."""
