"""BERT (Devlin et al. 2019, section 3) and GPT (Radford et al. 2018, section 3.1; 2019, section 2.3)."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from transformer.families.language.interface import LanguageConfig, LanguageParams
from transformer.nn.kernels.linear import Linear
from transformer.nn.layers import Encoder, Model, initialise
from transformer.nn.layout import Cache, Layout, Padded, layout_of
from transformer.nn.positions import TokenEmbedding, embedding_positions


class LanguageNetwork(Model, ABC):
    """Maps token ids to states, which `logits` maps to the vocabulary."""

    encoder: nn.Module
    config: LanguageConfig

    def __init__(self, config: LanguageConfig, positions: nn.Module, encoder: Callable[[], nn.Module]) -> None:
        """positions: maps positions to what is added to the embeddings; encoder: makes the stack of layers."""
        super().__init__()
        params = config.model
        self.config = config
        self.causal = params.objective == "causal"
        tokens = nn.Embedding(config.entries, params.d_model)
        self.embedding = TokenEmbedding(tokens, positions, params)
        self.encoder = encoder()
        transformed = params.output == "transformed"
        self.transform = OutputTransform(params.d_model) if transformed else nn.Identity()
        self.output = Linear(params.d_model, config.entries, bias=transformed)
        initialise(self, params)
        self.output.weight = tokens.weight
        if transformed:
            nn.init.zeros_(self.output.bias)

    @property
    def context(self) -> int:
        """Maximum length of a text, in tokens."""
        return int(self.config.model.max_length)

    @abstractmethod
    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) of token_ids (B, T), padded at the end; packed: of real tokens only, (N, C)."""

    def logits(self, states: Tensor) -> Tensor:
        """Map states (..., C) to logits (..., V): of the masked token itself (BERT), or of the next token (GPT)."""
        logits: Tensor = self.output(self.transform(states))
        return logits

    def start(self, token_ids: Tensor) -> Cache:
        """Read prompts (B, T) without padding; T may be 0. Returns the cache for `step`."""
        cache = self.cache()
        if token_ids.shape[1]:
            self.read(token_ids, cache)
        return cache

    def cache(self) -> Cache:
        """Return an empty cache."""
        return Cache()

    @abstractmethod
    def read(self, token_ids: Tensor, cache: Cache | None) -> Tensor:
        """Append the tokens (B, T) to the cache, if there is one. Returns their states (B, T, C)."""

    def step(self, token_ids: Tensor, cache: Cache) -> Tensor:
        """Append one token per text, token_ids (B,), to the cache. Returns the states (B, C)."""
        return self.read(token_ids[:, None], cache)[:, 0]


class LanguageTransformer(LanguageNetwork):
    """BERT and GPT: the same stack of layers, of self-attention, then feed-forward.

    In BERT every token attends to all others; in GPT only to those before it.
    """

    encoder: Encoder

    def __init__(self, config: LanguageConfig) -> None:
        params = config.model
        assert isinstance(params, LanguageParams)
        super().__init__(config, embedding_positions(params), lambda: Encoder(params.layers, params))

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """Return the states (B, T, C) of token_ids (B, T), padded at the end; packed: of real tokens only, (N, C)."""
        layout = layout_of(token_ids, self.config.pad_id, packed=packed)
        return layout.real(self._encode(layout))

    def read(self, token_ids: Tensor, cache: Cache | None) -> Tensor:
        """Append the tokens (B, T) to the cache, if there is one. Returns their states (B, T, C)."""
        return self._encode(Padded(token_ids, self.config.pad_id, cache))

    def _encode(self, layout: Layout) -> Tensor:
        embedded = self.embedding(layout.token_ids, layout.positions)
        states: Tensor = self.encoder(embedded, layout, causal=self.causal)
        return states


class OutputTransform(nn.Module):
    """LayerNorm(GELU(x W + b)), applied by BERT before the product with the embeddings."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.linear = Linear(d_model, d_model)
        self.activation = nn.GELU()
        self.norm = nn.LayerNorm(d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Transform states: (..., C) -> (..., C)."""
        transformed: Tensor = self.norm(self.activation(self.linear(states)))
        return transformed
