"""The parameters of the language models, and the configuration to rebuild one."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section
from transformer.nn.config import TransformerParams


class LanguageParams(TransformerParams):
    """`model` of a language task."""

    objective: Literal["masked", "causal"]
    """What is predicted: hidden tokens from both sides (BERT, Devlin et al. 2019), or each token from those before it
    (GPT, Radford et al. 2018)."""
    layers: int = Field(ge=1)
    """Layers of the stack."""
    output: Literal["transformed", "plain"]
    """Logits are products with the embeddings: of a linear layer's output, GELU and layer normalisation after it, plus
    a bias (BERT), or of the states themselves (GPT-2)."""


class LanguageConfig(Section):
    """Everything needed to rebuild a model besides its weights: the content of config.json."""

    model: LanguageParams
    size: int = Field(ge=1)
    """Size of the vocabulary."""
    pad_id: int = Field(ge=0)
    mask_id: int = Field(ge=0)
    """What hides a token: the vocabulary's [MASK], or, of a vocabulary without one, the entry after its last."""
    vocabulary_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of its tokenizer.json: the ids mean nothing in another vocabulary."""

    @property
    def entries(self) -> int:
        """Embedded tokens: the vocabulary's, and [MASK] where it is needed and the vocabulary has none."""
        return self.size + (self.model.objective != "causal" and self.mask_id == self.size)

    @model_validator(mode="after")
    def _mask_is_embedded(self) -> Self:
        if self.mask_id > self.size:
            raise ValueError(f"mask_id ({self.mask_id}) is beyond the vocabulary of {self.size}")
        return self
