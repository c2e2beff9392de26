"""What tells the layers where a token stands (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from torch import Tensor, nn

from transformer.nn.config import TransformerParams
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
    """One trained vector a position."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, positions: Tensor) -> Tensor:
        """The vectors of some positions: (T,) -> (T, C)."""
        vectors: Tensor = self.table(positions)
        return vectors


class SinusoidalPositions(nn.Module):
    """The paper's fixed table; not part of the weights."""

    table: Tensor

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, d_model), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """The vectors of some positions: (T,) -> (T, C)."""
        return self.table[positions]


class NoPositions(nn.Module):
    """Nothing is added."""

    def forward(self, positions: Tensor) -> float:
        """Zero, whatever the position."""
        return 0.0


def make_positions(params: TransformerParams, *, extra: int = 0) -> nn.Module:
    """The module that `params.positions` names; extra: positions beyond those of the longest text."""
    if params.positions == "learned":
        return LearnedPositions(params.max_length + extra, params.d_model)
    if params.positions == "sinusoidal":
        return SinusoidalPositions(params.max_length + extra, params.d_model)
    return NoPositions()


class TokenEmbedding(nn.Module):
    """Token embedding, scaled by sqrt(d_model) if asked, plus positions, then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, tokens: nn.Embedding, params: TransformerParams, *, extra_positions: int = 0) -> None:
        """tokens: the table, which other parts of a model may share."""
        super().__init__()
        self.tokens = tokens
        self.positions = make_positions(params, extra=extra_positions)
        self.scale = math.sqrt(params.d_model) if params.scale_embeddings else 1.0
        self.dropout = Dropout(params.dropout)

    def forward(self, token_ids: Tensor, *, start: int = 0) -> Tensor:
        """token_ids: (B, T), of which the first stands at position `start`. Returns (B, T, C)."""
        places = torch.arange(start, start + token_ids.shape[1], device=token_ids.device)
        return self.at(token_ids, places)

    def at(self, token_ids: Tensor, places: Tensor) -> Tensor:
        """Tokens at given positions; `places`: broadcastable to token_ids (...). Returns (..., C)."""
        dropped: Tensor = self.dropout(self.tokens(token_ids) * self.scale + self.positions(places))
        return dropped
