"""Parameters of the language models, and the configuration to rebuild one."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer.core.validation import Section
from transformer.data.vocabulary import Vocabulary
from transformer.nn.config import MOST_LAYERS, LayerParams, PositionedParams, TransformerParams


class _StackParams(Section):
    """What the layers of every language model form."""

    layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of layers."""
    output: Literal["transformed", "plain"]
    """Logits are products with the token embeddings: of the states after a linear layer, GELU and layer normalisation,
    plus a bias (BERT), or of the states themselves (GPT-2)."""


class LanguageParams(TransformerParams, _StackParams):
    """`model` of a language task."""

    objective: Literal["masked", "causal"]
    """Training objective: predict masked tokens from both sides (BERT, Devlin et al. 2019), or each token from those
    before it (GPT, Radford et al. 2018)."""


class TransformerXLParams(LayerParams, _StackParams):
    """`model` of a language task, for texts of any length: `max_length` is the length of a segment."""

    kind: Literal["transformer_xl"]
    """Transformer-XL (Dai et al. 2019), which reads `train.batch_size` parallel streams of texts."""
    objective: Literal["causal"]
    """Training objective: predict each token from those before it."""
    memory_length: int = Field(ge=0)
    """States of earlier segments that each layer attends to, without gradient."""
    same_length: bool
    """Each token attends to as many tokens before it as the memory has, wherever it stands in its segment."""
    clamp_length: int | None = Field(ge=1)
    """Distances from this one on are encoded alike; null for no limit."""


class ReformerParams(PositionedParams, _StackParams):
    """`model` of a language task, for long texts in little memory."""

    kind: Literal["reformer"]
    """Reformer (Kitaev et al. 2020): attention among tokens that hash alike, in reversible layers."""
    objective: Literal["causal"]
    """Training objective: predict each token from those before it."""
    norm: Literal["pre"]
    """Layer normalisation before each sublayer and once at the end."""
    positions: Literal["learned", "sinusoidal"]
    """Added to the embeddings."""
    buckets: int = Field(ge=2, multiple_of=2)
    """Buckets that each round of hashing sorts the tokens into."""
    hash_rounds: int = Field(ge=0)
    """Rounds of hashing; 0 for attention to all tokens."""
    chunk_length: int = Field(ge=1)
    """Tokens per chunk of the sorted text: each sees its own chunk and the one before."""
    hash_seed: int = Field(ge=0, lt=2**32)
    """Seed of the hashes in evaluation and use; training draws others in each update."""
    feed_forward_chunk: int | None = Field(ge=1)
    """Positions that a feed-forward network computes at a time; null for all."""


AnyLanguageParams = Annotated[LanguageParams | TransformerXLParams | ReformerParams, Field(discriminator="kind")]


class LanguageConfig(Section):
    """Everything needed to rebuild a model except its weights; stored as config.json."""

    model: AnyLanguageParams
    size: int = Field(ge=1)
    """Vocabulary size."""
    pad_id: int = Field(ge=0)
    mask_id: int = Field(ge=0)
    """Id of the mask token: the vocabulary's [MASK], or the id after its last if it has none."""
    vocabulary_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Digest of the vocabulary's tokenizer.json: the ids are meaningless with another vocabulary."""

    @property
    def entries(self) -> int:
        """Number of token embeddings: the vocabulary's, plus [MASK] if it is needed and not in the vocabulary."""
        return self.size + (self.model.objective != "causal" and self.mask_id == self.size)

    @model_validator(mode="after")
    def _mask_is_embedded(self) -> Self:
        if self.mask_id > self.size:
            raise ValueError(f"mask_id ({self.mask_id}) is beyond the vocabulary of {self.size}")
        return self


MASK = "[MASK]"


def mask_id(vocabulary: Vocabulary) -> int:
    """Return the id of the vocabulary's [MASK], or the id after its last if it has none."""
    found = vocabulary.tokenizer.token_to_id(MASK)
    return vocabulary.size if found is None else int(found)
