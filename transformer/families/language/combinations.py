"""Parameters that depend on each other, across sections."""

from typing import Self

from pydantic import model_validator

from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.tokenization import PreTokenizerParams
from transformer.families.language.evaluate import EvaluateParams
from transformer.families.language.interface import AnyLanguageParams, ReformerParams, TransformerXLParams


class Params(StageParams):
    """The sections that depend on each other."""

    model: AnyLanguageParams
    evaluate: EvaluateParams
    tokenize: PreTokenizerParams

    @model_validator(mode="after")
    def _windows_overlap_or_touch(self) -> Self:
        stride, context = self.evaluate.stride, self.model.max_length
        if stride is not None and stride > context:
            raise ValueError(f"evaluate.stride ({stride}) must not be more than model.max_length ({context})")
        return self

    @model_validator(mode="after")
    def _read_as_the_kind_does(self) -> Self:
        remembers = isinstance(self.model, TransformerXLParams)
        if remembers and self.evaluate.stride is not None:
            raise ValueError("evaluate.stride must be null for a transformer_xl, which reads a text in one piece")
        if not remembers and self.evaluate.memory_length is not None:
            raise ValueError(f"evaluate.memory_length must be null for a {self.model.kind}, which has no memory")
        if not isinstance(self.model, ReformerParams) and self.evaluate.hash_rounds is not None:
            raise ValueError(f"evaluate.hash_rounds must be null for a {self.model.kind}, which hashes nothing")
        return self

    @model_validator(mode="after")
    def _answers_can_be_joined(self) -> Self:
        if self.model.objective == "causal":
            self.tokenize.check_joined("tokenize.kind")
        return self


def check(task: Task, params: Params) -> None:
    """Do nothing: no check depends on the task."""
