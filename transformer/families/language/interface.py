"""Parameters of the language models, and the configuration to rebuild one."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.validation import Section
from transformer.data.vocabulary import Vocabulary
from transformer.nn.config import MOST_LAYERS, TransformerParams


class LanguageParams(TransformerParams):
    """`model` of a language task."""

    objective: Literal["masked", "causal"]
    """Training objective: predict masked tokens from both sides (BERT, Devlin et al. 2019), or each token from those
    before it (GPT, Radford et al. 2018)."""
    layers: int = Field(ge=1, le=MOST_LAYERS)
    """Number of layers."""
    output: Literal["transformed", "plain"]
    """Logits are products with the token embeddings: of the states after a linear layer, GELU and layer normalisation,
    plus a bias (BERT), or of the states themselves (GPT-2)."""


class LanguageConfig(Section):
    """Everything needed to rebuild a model except its weights; stored as config.json."""

    model: LanguageParams
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
