"""ELECTRA (Clark et al. 2020): a small generator replaces some tokens of a text, a discriminator finds them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.families.language.nn.config import LanguageConfig, LanguageParams
from transformer.families.language.nn.model import LanguageTransformer, OutputTransform
from transformer.nn.layers import Encoder, initialise
from transformer.nn.layout import Layout, layout_of
from transformer.nn.model import Model
from transformer.nn.positions import TokenEmbedding, embedding_positions

_ROWS = 512  # places whose distributions over the vocabulary are in memory at a time


class ReplacedTransformer(Model):
    """The discriminator, with the generator that it was trained against: token ids in, states out.

    `detected` maps states to the logits of "this token was replaced". `embedding` and `encoder` are the
    discriminator's; the generator reads the same embeddings.
    """

    causal = False

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        params = config.model
        self.config = config
        tokens = nn.Embedding(config.entries, params.d_model)
        norm = nn.LayerNorm(params.d_model) if params.embedding_norm else None
        self.embedding = TokenEmbedding(tokens, embedding_positions(params), params, norm=norm)
        self.encoder = Encoder(params.layers, params)
        self.detection = Detection(params.d_model)
        self.generator = Generator(self.embedding, config)
        initialise(self, params)
        self.generator.tie()

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """The discriminator's states, as `LanguageTransformer.forward`."""
        layout = layout_of(token_ids, self.config.pad_id, packed=packed)
        states: Tensor = self.encoder(self.embedding(layout.token_ids, layout.positions), layout)
        return states

    def detected(self, states: Tensor) -> Tensor:
        """States (..., C) -> logits (...) of the probability that a token was replaced, D(x, t) of section 2."""
        logits: Tensor = self.detection(states)
        return logits


class Generator(nn.Module):
    """A masked language model whose layers are narrower than its embeddings, which are the discriminator's.

    A linear layer narrows the embedded tokens, and the output transform widens the states again before their product
    with the embeddings (section 3.2).
    """

    def __init__(self, embedding: TokenEmbedding, config: LanguageConfig) -> None:
        """embedding: the discriminator's, tokens and positions."""
        super().__init__()
        params = narrowed(config.model)
        self.config = config
        self.embedding = embedding
        self.narrow = nn.Linear(config.model.d_model, params.d_model)
        self.encoder = Encoder(params.layers, params)
        self.transform = OutputTransform(params.d_model, config.model.d_model)
        self.output = nn.Linear(config.model.d_model, config.entries)

    def tie(self) -> None:
        """Make the output layer the embedding, its bias 0."""
        self.output.weight = self.embedding.tokens.weight
        nn.init.zeros_(self.output.bias)

    def forward(self, token_ids: Tensor, *, packed: bool = False) -> Tensor:
        """The states (B, T, width) or (N, width), as `LanguageTransformer.forward`."""
        layout: Layout = layout_of(token_ids, self.config.pad_id, packed=packed)
        states: Tensor = self.encoder(self.narrow(self.embedding(layout.token_ids, layout.positions)), layout)
        return states

    def logits(self, states: Tensor) -> Tensor:
        """States (..., width) -> logits (..., V) of the hidden token."""
        logits: Tensor = self.output(self.transform(states))
        return logits


class Detection(nn.Module):
    """GELU(x W + b) w + c: a logit for each token."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, d_model)
        self.activation = nn.GELU()
        self.output = nn.Linear(d_model, 1)

    def forward(self, states: Tensor) -> Tensor:
        """(..., C) -> (...)."""
        logits: Tensor = self.output(self.activation(self.linear(states)))[..., 0]
        return logits


AnyLanguageModel = LanguageTransformer | ReplacedTransformer


def build_model(config: LanguageConfig) -> AnyLanguageModel:
    """A fresh model, its weights drawn from torch's generator."""
    return ReplacedTransformer(config) if config.model.objective == "replaced" else LanguageTransformer(config)


def predictor(model: AnyLanguageModel) -> LanguageTransformer | Generator:
    """The part that predicts tokens."""
    return model.generator if isinstance(model, ReplacedTransformer) else model


def narrowed(params: LanguageParams) -> LanguageParams:
    """The generator's parameters: heads of the same size, but fewer, and everything else as narrow."""
    share = params.generator_width
    width = max(1, round(share * params.d_model))
    heads = max(1, params.heads * width // params.d_model)
    sizes = {"d_ff": max(1, round(share * params.d_ff)), "heads": heads, "head_dim": params.dimension_of_head}
    return params.model_copy(update={"d_model": width, **sizes})


def sampled(logits: Tensor, draws: Tensor) -> Tensor:
    """One token per row, drawn from softmax(logits (M, V)) by draws (M,), uniform in [0, 1).

    The inverse of the distribution function in two steps, first the block of neighbouring tokens, then the token in it:
    one pass over the vocabulary, and sums that are the same each time on every device.
    """
    size = max(1, round(logits.shape[1] ** 0.5))
    with torch.autocast(logits.device.type, enabled=False):  # running sums need all their digits
        probabilities = F.pad(logits.float().softmax(dim=-1), (0, -logits.shape[1] % size))
        blocks = probabilities.view(len(probabilities), -1, size)  # (M, blocks, size)
        sums = blocks.sum(dim=-1)
        wanted = draws.float() * sums.sum(dim=-1)
        block, before = _reached(sums, wanted)
        token, _ = _reached(blocks[torch.arange(len(blocks), device=blocks.device), block], wanted - before)
    found: Tensor = block * size + token
    return found


def _reached(weights: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The column where the running sum of each row of weights (M, K) exceeds `wanted` (M,), and the sum before it.

    Of a row that rounding leaves below, the last column that weighs anything.
    """
    upper = torch.ones(weights.shape[1], weights.shape[1], device=weights.device).triu()
    running = weights @ upper
    beyond = (running > wanted[:, None]) & (weights > 0)
    last = weights.shape[1] - 1 - (weights > 0).flip(1).int().argmax(dim=1)
    column = torch.where(beyond.any(dim=1), beyond.int().argmax(dim=1), last)
    at = column[:, None]
    return column, (running.gather(1, at) - weights.gather(1, at))[:, 0]


def replacements(generator: Generator, states: Tensor, draws: Tensor) -> Tensor:
    """Tokens (M,) that the generator puts at the hidden places, drawn from its distributions; no gradient.

    states: (M, C), after the output transform; draws: (M,), uniform in [0, 1). Neither padding nor [MASK] is drawn.
    """
    parts = []
    with torch.no_grad():
        for start in range(0, len(states), _ROWS):
            logits = generator.output(states[start : start + _ROWS])
            for never in (generator.config.pad_id, generator.config.mask_id):
                logits[:, never] = float("-inf")
            parts.append(sampled(logits, draws[start : start + _ROWS]))
    return torch.cat(parts) if parts else draws.long()


def replaced(token_ids: Tensor, places: Tensor, tokens: Tensor) -> Tensor:
    """token_ids (B, T) with `tokens` (M,) at `places` (M,), counted in the flattened ids."""
    return token_ids.flatten().index_copy(0, places, tokens).view_as(token_ids)
