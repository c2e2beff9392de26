"""Reformer: long texts in little memory (Kitaev et al. 2020)."""

import torch
from torch import Tensor, nn

from transformer.families.language.interface import LanguageConfig, ReformerParams
from transformer.families.language.network import LanguageNetwork
from transformer.nn.dropout import Dropout
from transformer.nn.hashed import HashedAttention, Hashing
from transformer.nn.layers import FeedForward
from transformer.nn.layout import Cache
from transformer.nn.positions import embedding_positions
from transformer.nn.reversible import ReversibleLayer, reversible


class Reformer(LanguageNetwork):
    """A causal language model of reversible layers, whose tokens attend to tokens that hash alike.

    How a text is cut into chunks depends on all of its tokens. So a token sees no later one, but which earlier ones it
    sees may change with what follows; generation hashes the text again for each token.
    """

    encoder: "HashedEncoder"

    def __init__(self, config: LanguageConfig) -> None:
        params = config.model
        assert isinstance(params, ReformerParams)
        super().__init__(config, embedding_positions(params), lambda: HashedEncoder(params))

    def pads(self, device: torch.device) -> bool:
        """True: the tokens of a text are sorted, so texts have rows of their own."""
        return True

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) of token_ids (B, T), padded at the end."""
        assert not packed
        padding = token_ids == self.config.pad_id
        states: Tensor = self.encoder(self.embedding(token_ids), padding if bool(padding.any()) else None)
        return states

    def cache(self) -> "TextCache":
        """Return an empty cache."""
        return TextCache()

    def read(self, token_ids: Tensor, cache: Cache | None) -> Tensor:
        """Append the tokens (B, T) to the cache, if there is one. Returns their states (B, T, C)."""
        if isinstance(cache, TextCache):
            cache.ids = token_ids if cache.ids is None else torch.cat((cache.ids, token_ids), dim=1)
            whole: Tensor = self(cache.ids)
            return whole[:, -token_ids.shape[1] :]
        return self(token_ids)  # type: ignore[no-any-return]


class TextCache(Cache):
    """The text so far, which is read again for each token."""

    ids: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, in this order; rows: (B',), integer indices, repeats allowed."""
        if self.ids is not None:
            self.ids = self.ids.index_select(0, rows)


class HashedEncoder(nn.Module):
    """A stack of reversible layers over embedded tokens."""

    def __init__(self, params: ReformerParams) -> None:
        super().__init__()
        self.hashing = Hashing(params.buckets, params.hash_rounds, params.chunk_length)
        """How tokens are hashed; evaluation may change the number of rounds."""
        self.seed = params.hash_seed
        chunk = params.feed_forward_chunk
        self.layers = nn.ModuleList(
            ReversibleLayer(AttentionBlock(params), FeedForwardBlock(params), chunk) for _ in range(params.layers)
        )
        self.norm = nn.LayerNorm(params.d_model)

    def forward(self, states: Tensor, padding: Tensor | None) -> Tensor:
        """states: (B, T, C); padding: (B, T), True at tokens that are not real. Returns (B, T, C)."""
        layers = [layer for layer in self.layers if isinstance(layer, ReversibleLayer)]

        def hashed(number: int, read: Tensor) -> tuple[Hashing, Tensor | None]:
            attention = layers[number].attention
            assert isinstance(attention, AttentionBlock)
            if not self.hashing.rounds or read.shape[1] <= self.hashing.chunk:
                return self.hashing, None
            generator = None if self.training else torch.Generator().manual_seed(self.seed)
            return self.hashing, attention.hashes(read, self.hashing, generator, padding)

        encoded: Tensor = self.norm(reversible(layers, states, hashed))
        return encoded


class AttentionBlock(nn.Module):
    """Dropout(HashedAttention(LayerNorm(x)))."""

    def __init__(self, params: ReformerParams) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(params.d_model)
        width, dropout = params.dimension_of_head, params.attention_dropout
        self.attention = HashedAttention(params.d_model, params.heads, head_dim=width, dropout=dropout)
        self.dropout = Dropout(params.dropout)

    def hashes(
        self, states: Tensor, hashing: Hashing, generator: torch.Generator | None, padding: Tensor | None
    ) -> Tensor:
        """Return the buckets of `states` (B, T, C), as `HashedAttention.hashes`."""
        return self.attention.hashes(self.norm(states), self.attention.rotations(hashing, generator), padding)

    def forward(self, states: Tensor, hashing: Hashing, buckets: Tensor | None) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        dropped: Tensor = self.dropout(self.attention(self.norm(states), hashing, buckets))
        return dropped


class FeedForwardBlock(nn.Module):
    """Dropout(FFN(LayerNorm(x)))."""

    def __init__(self, params: ReformerParams) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(params.d_model)
        self.feed_forward = FeedForward(params)
        self.dropout = Dropout(params.dropout)

    def forward(self, states: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        dropped: Tensor = self.dropout(self.feed_forward(self.norm(states)))
        return dropped
