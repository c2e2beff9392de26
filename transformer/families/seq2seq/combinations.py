"""Parameters that depend on each other, across sections."""

from typing import Self

from pydantic import model_validator

from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.encoding import VocabParams
from transformer.data.sources import sample_columns
from transformer.families.seq2seq.download import PairsDownload
from transformer.families.seq2seq.interface import AnySeq2SeqParams, Seq2SeqParams
from transformer.families.seq2seq.tokenize import TokenizeParams
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams


class Params(StageParams):
    """The sections that depend on each other."""

    download: PairsDownload
    tokenize: TokenizeParams
    vocab: VocabParams
    model: AnySeq2SeqParams
    train: Seq2SeqTrainParams

    @model_validator(mode="after")
    def _tied_embeddings_need_one_vocabulary(self) -> Self:
        tied = isinstance(self.model, Seq2SeqParams) and self.model.tie_embeddings == "all"
        if tied and not self.vocab.joint:
            raise ValueError(
                "model.tie_embeddings `all` needs one vocabulary for both languages: set vocab.joint to true, or"
                " tie_embeddings to `target`"
            )
        return self

    @model_validator(mode="after")
    def _both_directions_need_one_vocabulary(self) -> Self:
        if self.train.bidirectional_epochs and not self.vocab.joint:
            raise ValueError(
                "train.bidirectional_epochs needs one vocabulary for both languages: set vocab.joint to true, or"
                " bidirectional_epochs to 0"
            )
        return self


def check(task: Task, params: Params) -> None:
    """Raise ValueError (one line) if the corpus lacks a requested language."""
    languages = list(params.download.languages)
    if params.download.source == "sample":
        columns = list(sample_columns(task))
        if {*languages} != {*columns}:
            raise ValueError(
                f"download.languages is {languages}, but the sample corpus is in {' and '.join(columns)}: set"
                f" download.source to `files` or `hub`, or languages to [{', '.join(columns)}]"
            )
    for name in ("source", "target"):
        if (language := getattr(params.tokenize, name)) not in languages:
            raise ValueError(
                f"tokenize.{name} is {language[:60]!r}, but download.languages is {languages}: choose one of these"
            )
