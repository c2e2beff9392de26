"""Attention among tokens that hash alike (Kitaev et al. 2020, section 2)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.nn.kernels.linear import Linear
from transformer.nn.kernels.packing import merged

_LATER, _ITSELF = -1e9, -1e5
"""Added to the scores of later tokens, and of the token itself, which counts only where nothing else can be seen."""


class Hashing(NamedTuple):
    """How tokens are sorted into buckets."""

    buckets: int
    """Number of buckets, even."""
    rounds: int
    """Number of hashes, each of which gives a token others to attend to; 0: no hash, attention to all tokens."""
    chunk: int
    """Tokens per chunk of the sorted text. A token sees its own chunk and the one before."""


class HashedAttention(nn.Module):
    """Causal self-attention with one projection for queries and keys (shared QK)."""

    def __init__(self, d_model: int, heads: int, *, head_dim: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = Linear(d_model, heads * head_dim)
        self.value = Linear(d_model, heads * head_dim)
        self.output = Linear(heads * head_dim, d_model)

    def rotations(self, hashing: Hashing, generator: torch.Generator | None) -> Tensor:
        """Draw the random rotations of each head and round, (H, D, R, buckets / 2)."""
        shape = self.heads, self.query.out_features // self.heads, hashing.rounds, hashing.buckets // 2
        weight = self.query.weight
        return torch.randn(shape, generator=generator, dtype=weight.dtype).to(weight.device)

    def hashes(self, states: Tensor, rotations: Tensor, padding: Tensor | None) -> Tensor:
        """Return the bucket of each token of `states` (B, T, C), by round, (B, H, R, T).

        padding: (B, T), True at tokens that are not real; they have a bucket of their own, behind all others.
        """
        rotated = torch.einsum("bhtd,hdrk->bhrtk", self._split(self.query(states)).detach(), rotations)
        found = torch.cat((rotated, -rotated), dim=-1).argmax(dim=-1)
        return found if padding is None else found.masked_fill(padding[:, None, None], 2 * rotations.shape[-1])

    def forward(self, states: Tensor, hashing: Hashing, buckets: Tensor | None) -> Tensor:
        """Let each token of `states` (B, T, C) attend to others. Returns (B, T, C).

        buckets: result of `hashes`; None for attention to all tokens before.
        """
        attended = self._attended(states, self._split(self.value(states)), hashing, buckets)
        concatenated: Tensor = self.output(merged(attended))
        return concatenated

    def weights(self, states: Tensor, hashing: Hashing, buckets: Tensor | None) -> Tensor:
        """Return the weights (B, H, T, T) of the same `forward` call: what it makes of one-hot values."""
        one_hot = torch.eye(states.shape[1], device=states.device, dtype=states.dtype)
        return self._attended(states, one_hot.expand(len(states), self.heads, -1, -1), hashing, buckets)

    def _attended(self, states: Tensor, value: Tensor, hashing: Hashing, buckets: Tensor | None) -> Tensor:
        query, dropout = self._split(self.query(states)), self.dropout if self.training else 0.0
        if buckets is None:
            place = torch.arange(states.shape[1], device=states.device)
            return _attend(query, _keys(query), value, _scores_added(place, place), dropout)[0]
        return hashed_attention(query, value, buckets, hashing.chunk, dropout=dropout)

    def _split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:-1], self.heads, -1).transpose(-3, -2)  # (B, T, H * D) -> (B, H, T, D)


def hashed_attention(query: Tensor, value: Tensor, buckets: Tensor, chunk: int, *, dropout: float = 0.0) -> Tensor:
    """Attend within chunks of the tokens sorted by bucket, and to one chunk back; rounds are joined by their weight.

    query: (B, H, T, D), also the keys; value: (B, H, T, E); buckets: (B, H, R, T). Returns (B, H, T, E).
    A pair that meets in several rounds counts once, as in the paper's appendix A: with rounds enough for all pairs to
    meet, this is attention to all tokens.
    """
    length, rounds = query.shape[2], buckets.shape[2]
    order = buckets.argsort(dim=-1, stable=True)
    places = order.argsort(dim=-1)  # (B, H, R, T): of each token in the sorted text
    spare = -length % chunk
    sorted_places = F.pad(order, (0, spare), value=length).view(*order.shape[:3], -1, chunk)  # (B, H, R, N, c)
    rows = F.pad(order, (0, spare)).flatten(2)
    queries, values = (_rows(each, rows).view(*sorted_places.shape, -1) for each in (query, value))
    seen = _with_chunk_before(sorted_places, length)
    added = _scores_added(sorted_places, seen)
    if rounds > 1:
        chunks = F.pad(places // chunk, (0, 1), value=-2)
        added = added - _meetings(chunks, sorted_places, seen).to(query.dtype).log()
    keys, values = (_with_chunk_before(each, 0.0) for each in (_keys(queries), values))
    attended, scores = _attend(queries, keys, values, added, dropout)
    # Back from the sorted texts to each token's rounds, (B, H, R, T, E).
    attended = attended.flatten(3, 4)
    attended = attended.gather(3, places[..., None].expand(*places.shape, attended.shape[-1]))
    if rounds == 1:
        return attended[:, :, 0]
    weight = scores.logsumexp(dim=-1).flatten(3, 4).gather(3, places).softmax(dim=2)
    return (attended * weight[..., None]).sum(dim=2)


def _attend(query: Tensor, key: Tensor, value: Tensor, added: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    """Return the attended values (..., T, E), and the scores (..., T, S)."""
    scores = query @ key.transpose(-2, -1) + added
    weights = scores.softmax(dim=-1).to(value.dtype)
    return (F.dropout(weights, dropout) if dropout else weights) @ value, scores


def _scores_added(queries: Tensor, keys: Tensor) -> Tensor:
    """Return what is added to the scores, (..., T, S), given the places of queries (..., T) and keys (..., S)."""
    distance = queries[..., :, None] - keys[..., None, :]
    return (distance < 0) * _LATER + (distance == 0) * _ITSELF


def _keys(query: Tensor) -> Tensor:
    """Return the keys: queries of unit length, divided by sqrt(d_k) like every key (section 2)."""
    width = query.shape[-1]
    keys: Tensor = F.rms_norm(query, (width,), eps=1e-6) / width**0.5
    return keys


def _rows(states: Tensor, rows: Tensor) -> Tensor:
    """Select rows (B, H, M) of states (B, H, T, D)."""
    return states.gather(2, rows[..., None].expand(*rows.shape, states.shape[-1]))


def _with_chunk_before(chunks: Tensor, nothing: float) -> Tensor:
    """Put each chunk's predecessor, or `nothing`, before it: (B, H, R, N, c, ...) -> (B, H, R, N, 2c, ...)."""
    before = torch.cat((torch.full_like(chunks[:, :, :, :1], nothing), chunks[:, :, :, :-1]), dim=3)
    return torch.cat((before, chunks), dim=4)


def _meetings(chunks: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Count the rounds in which each pair can meet, at least 1: (B, H, R, N, c, 2c).

    chunks: (B, H, R, T + 1), of each token by round; queries, keys: their places, T for none.
    """
    count: Tensor = torch.zeros((), dtype=torch.int16)
    for of_round in chunks.to(torch.int16).unbind(dim=2):
        own, other = (of_round.gather(2, each.flatten(2)).view(each.shape) for each in (queries, keys))
        own, other = own[..., :, None], other[..., None, :]
        count = count + (own == other) + (own - 1 == other)
    return count.clamp(min=1)
