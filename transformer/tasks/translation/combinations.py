"""What the sections of a translation task must have in common, beyond what each stage can see of them."""

from typing import Self

from pydantic import model_validator

from transformer.nn.seq2seq.config import AnySeq2SeqParams, Seq2SeqParams
from transformer.params.schema import StageParams
from transformer.text.vocabulary_config import VocabParams


class Params(StageParams):
    """The sections that depend on each other."""

    vocab: VocabParams
    model: AnySeq2SeqParams

    @model_validator(mode="after")
    def _tied_embeddings_need_one_vocabulary(self) -> Self:
        tied = isinstance(self.model, Seq2SeqParams) and self.model.tie_embeddings == "all"
        if tied and not self.vocab.joint:
            raise ValueError(
                "model.tie_embeddings `all` needs one vocabulary for both languages: set vocab.joint to true, or"
                " tie_embeddings to `target`"
            )
        return self
