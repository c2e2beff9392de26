"""The parameters of the language models, and the configuration to rebuild one."""

from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from transformer.core.schema import Section
from transformer.nn.config import TransformerParams


class LanguageParams(TransformerParams):
    """`model` of a language task."""

    objective: Literal["masked", "causal", "replaced"]
    """What is predicted: hidden tokens from both sides (BERT, Devlin et al. 2019), each token from those before it
    (GPT, Radford et al. 2018), or whether a token is the text's own or a small generator's (ELECTRA, Clark et al.
    2020)."""
    layers: int = Field(ge=1)
    """Layers of the stack."""
    embedding_norm: bool
    """Layer normalisation of the embeddings, as in BERT."""
    output: Literal["transformed", "plain"]
    """Logits are products with the embeddings: of a linear layer's output, GELU and layer normalisation after it, plus
    a bias (BERT), or of the states themselves (GPT-2). `replaced`: the generator's, `transformed`, which widens its
    states too."""
    generator_width: float = Field(default=0.25, gt=0, le=1)
    """`replaced`: width of the generator, as a share of `d_model`; its heads and `d_ff` shrink alike, its layers are as
    many (Clark et al. 2020, section 3.2)."""
    detection_weight: float = Field(default=50.0, gt=0)
    """`replaced`: weight of the discriminator's loss beside the generator's, both means per token (Clark et al. 2020,
    section 2)."""

    @model_validator(mode="after")
    def _generator_widens_its_states(self) -> Self:
        if self.objective == "replaced" and self.output != "transformed":
            raise ValueError("objective `replaced` needs output `transformed`, which widens the generator's states")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_off(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A model without a generator has the config.json that it had before there was one."""
        leaves: dict[str, Any] = serialize(self)
        off = () if self.objective == "replaced" else ("generator_width", "detection_weight")
        return {name: leaves[name] for name in leaves if name not in off}


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
