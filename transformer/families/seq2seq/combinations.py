"""What the sections of a translation task must have in common, beyond what each stage can see of them."""

from typing import Self

from pydantic import model_validator

from transformer.core.schema import StageParams
from transformer.families.seq2seq.download import TranslationDownload
from transformer.families.seq2seq.nn.config import AnySeq2SeqParams, Seq2SeqParams
from transformer.families.seq2seq.tokenize import TokenizeParams
from transformer.vocabulary.config import VocabParams

SAMPLE_LANGUAGES = {"de", "en"}


class Params(StageParams):
    """The sections that depend on each other."""

    download: TranslationDownload
    tokenize: TokenizeParams
    vocab: VocabParams
    model: AnySeq2SeqParams

    @model_validator(mode="after")
    def _sides_are_columns(self) -> Self:
        languages = list(self.download.languages)
        if self.download.source == "sample" and {*languages} != SAMPLE_LANGUAGES:
            raise ValueError(
                f"download.languages is {languages}, but the sample corpus is in de and en: set download.source to"
                " `files` or `hub`, or languages to [de, en]"
            )
        for name in ("source", "target"):
            if (language := getattr(self.tokenize, name)) not in languages:
                raise ValueError(
                    f"tokenize.{name} is `{language}`, but download.languages is {languages}: name one of these"
                )
        return self

    @model_validator(mode="after")
    def _tied_embeddings_need_one_vocabulary(self) -> Self:
        tied = isinstance(self.model, Seq2SeqParams) and self.model.tie_embeddings == "all"
        if tied and not self.vocab.joint:
            raise ValueError(
                "model.tie_embeddings `all` needs one vocabulary for both languages: set vocab.joint to true, or"
                " tie_embeddings to `target`"
            )
        return self
