"""The layer parameters that all families share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.validation import Section

MOST_LAYERS = 1000


class LayerParams(Section):
    """The sizes and choices of a Transformer's layers (Vaswani et al. 2017, section 3)."""

    d_model: int = Field(ge=1)
    """Width of embeddings and layer outputs."""
    heads: int = Field(ge=1)
    """Attention heads."""
    head_dim: int | None = Field(ge=1)
    """Dimensions of a head, d_k = d_v (section 3.2.2); null for d_model / heads."""
    d_ff: int = Field(ge=1)
    """Inner width of the feed-forward network."""
    dropout: float = Field(ge=0, lt=1)
    """After the embeddings and after each sublayer (section 5.4)."""
    attention_dropout: float = Field(ge=0, lt=1)
    """On the attention weights. On CPUs a value above 0 rules out the fused kernel."""
    activation_dropout: float = Field(ge=0, lt=1)
    """After the activation of the feed-forward network."""
    activation: Literal["relu", "gelu", "gelu_tanh"]
    """Activation of the feed-forward networks: ReLU as in the paper (equation 2), GELU (Hendrycks and Gimpel 2016), or
    GELU's tanh approximation, which GPT-2 uses."""
    norm: Literal["post", "pre"]
    """Layer normalisation after the residual sum, as in the paper, or before each sublayer and once at the end."""
    max_length: int = Field(ge=3)
    """Longest sequence in tokens, including special tokens."""
    embedding_init: Literal["xavier", "normal"]
    """Xavier-uniform like the other matrices, or N(0, 1/d_model), which scaling turns into unit variance."""
    residual_init: Literal["xavier", "scaled"]
    """`scaled`: the outputs of a stack's N sublayers are initialised 1 / sqrt(N) times as large (Radford et al. 2019,
    section 2.3). Without it a post-norm encoder may lose track of which token is where, and never recover."""
    scale_embeddings: bool
    """Multiply embeddings by sqrt(d_model) (section 3.4)."""

    @property
    def width(self) -> int:
        """Dimensions of a state."""
        return self.d_model

    @property
    def dimension_of_head(self) -> int:
        """`head_dim`, or d_model / heads."""
        return self.head_dim or self.d_model // self.heads

    @model_validator(mode="after")
    def _heads_divide_d_model(self) -> Self:
        if self.head_dim is None and self.d_model % self.heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of heads ({self.heads}) when head_dim is null"
            )
        return self


class PositionedParams(LayerParams):
    """The same with positions that are encoded one by one."""

    positions: Literal["learned", "sinusoidal", "rotary", "none"]
    """Added to the embeddings (section 3.5), or `rotary`: in self-attention (Su et al. 2021)."""

    @model_validator(mode="after")
    def _rotary_turns_pairs(self) -> Self:
        if self.positions == "rotary" and self.dimension_of_head % 2:
            raise ValueError(
                f"positions `rotary` rotates pairs of dimensions, but a head has {self.dimension_of_head}: set head_dim"
                " to an even number, or choose other positions"
            )
        return self


class TransformerParams(PositionedParams):
    """A Transformer's layers and positions."""

    kind: Literal["transformer"]
    """The Transformer (Vaswani et al. 2017)."""


class RecurrentLayerParams(Section):
    """The sizes and choices of recurrent layers over embedded tokens."""

    kind: Literal["recurrent"]
    """The recurrent models before it."""
    cell: Literal["lstm", "gru"]
    """Long short-term memory (Hochreiter and Schmidhuber 1997) or gated recurrent units (Cho et al. 2014)."""
    embedding: int = Field(ge=1)
    """Width of the embeddings."""
    hidden: int = Field(ge=1)
    """Width of a state, in each direction."""
    bidirectional: bool
    """Read the (source) sequence in both directions (Schuster and Paliwal 1997)."""
    dropout: float = Field(ge=0, lt=1)
    """After the embeddings, between layers and before the output; never on the recurrent connections."""
    max_length: int = Field(ge=3)
    """Longest sequence in tokens, including special tokens."""

    @property
    def width(self) -> int:
        """Dimensions of a state."""
        return self.hidden
