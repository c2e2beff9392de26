"""The parameters that all recurrent models share."""

from typing import Literal

from pydantic import Field

from transformer.core.schema import Section


class RecurrentLayerParams(Section):
    """The sizes and choices of recurrent layers over embedded tokens."""

    kind: Literal["recurrent"]
    cell: Literal["lstm", "gru"]
    """Long short-term memory (Hochreiter and Schmidhuber 1997) or gated recurrent units (Cho et al. 2014)."""
    embedding: int = Field(ge=1)
    """Width of the embeddings."""
    hidden: int = Field(ge=1)
    """Width of a state, in each direction."""
    bidirectional: bool
    """Read the (source) sequence from both ends (Schuster and Paliwal 1997)."""
    dropout: float = Field(ge=0, lt=1)
    """After the embeddings, between layers and before the output; never from one step to the next."""
    max_length: int = Field(ge=3)
    """Longest sequence in tokens, the special ones included."""

    @property
    def width(self) -> int:
        """Dimensions of a state."""
        return self.hidden
