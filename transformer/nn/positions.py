"""Position encodings (Vaswani et al. 2017, section 3.5)."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.config import LayerParams, PositionedParams
from transformer.nn.dropout import Dropout


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same; (length, d_model), float32."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position * torch.exp(even * (-math.log(10000.0) / d_model))
    table = torch.zeros(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle[:, : d_model // 2])
    return table.float()


class LearnedPositions(nn.Module):
    """One learned vector per position."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, positions: Tensor) -> Tensor:
        """Look up position vectors: (T,) -> (T, C)."""
        vectors: Tensor = self.table(positions)
        return vectors


class SinusoidalPositions(nn.Module):
    """The paper's fixed table; not stored with the weights."""

    table: Tensor

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, d_model), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Look up position vectors: (T,) -> (T, C)."""
        return F.embedding(positions, self.table)


class NoPositions(nn.Module):
    """No position encoding."""

    def forward(self, positions: Tensor) -> float:
        """Return zero."""
        return 0.0


class AttentionPositions(nn.Module):
    """Position encoding in self-attention: none, unless a subclass overrides a method."""

    def transform(self, heads: Tensor, positions: Tensor | None) -> Tensor:
        """Encode positions (T,) in queries or keys (..., T, D); returns the same shape."""
        return heads

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """Return the bias added to the scores, (H, T, S); the T queries are the last of the S positions."""
        return None


class RotaryPositions(AttentionPositions):
    """Rotate each pair of dimensions (2i, 2i+1) by pos * 10000^(-2i/D) (Su et al. 2021, eqs. 14 and 15).

    The dot product of a query at m and a key at n then depends on n - m alone (eq. 16).
    """

    table: Tensor

    def __init__(self, max_length: int, head_dim: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, head_dim), persistent=False)

    def transform(self, heads: Tensor, positions: Tensor | None) -> Tensor:
        """Rotate queries or keys by position, in the dtype of `heads`. Raises ValueError without positions."""
        if positions is None:
            raise ValueError("rotary attention needs the positions of its tokens")
        sine, cosine = self.table[positions].view(positions.shape[0], -1, 2).unbind(-1)  # (T, D / 2)
        one, two = heads.view(*heads.shape[:-1], -1, 2).unbind(-1)  # (..., T, D / 2)
        rotated = torch.stack((one * cosine - two * sine, one * sine + two * cosine), dim=-1)
        return rotated.flatten(-2).to(heads.dtype)


# By the value of `model.positions`: what is added to the embeddings, and what attention uses.
_ADDED: dict[str, Callable[[int, int], nn.Module]] = {"learned": LearnedPositions, "sinusoidal": SinusoidalPositions}
_IN_ATTENTION: dict[str, Callable[[PositionedParams], AttentionPositions]] = {
    "rotary": lambda params: RotaryPositions(params.max_length + 1, params.dimension_of_head),  # + 1: a [CLS] token
}


def embedding_positions(params: PositionedParams, *, extra: int = 0) -> nn.Module:
    """Return the module that `params.positions` adds to the embeddings; extra: positions beyond the longest text."""
    make = _ADDED.get(params.positions)
    return NoPositions() if make is None else make(params.max_length + extra, params.d_model)


def attention_positions(params: PositionedParams) -> AttentionPositions:
    """Return the position encoding that `params.positions` selects for self-attention."""
    make = _IN_ATTENTION.get(params.positions)
    return AttentionPositions() if make is None else make(params)


class TokenEmbedding(nn.Module):
    """Token embedding, optionally scaled by sqrt(d_model), plus positions, then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, tokens: nn.Embedding, positions: nn.Module, params: LayerParams) -> None:
        """tokens: the embedding table, possibly shared with other parts of the model; positions: maps positions to the
        addend.
        """
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.scale = math.sqrt(params.d_model) if params.scale_embeddings else 1.0
        self.dropout = Dropout(params.dropout)

    def forward(self, token_ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embed tokens. token_ids: (B, T) or (N,); positions: (T,) or (N,), default 0 to T - 1. Returns (B, T, C) or
        (N, C).
        """
        if positions is None:
            positions = torch.arange(token_ids.shape[-1], device=token_ids.device)
        dropped: Tensor = self.dropout(self.tokens(token_ids) * self.scale + self.positions(positions))
        return dropped
