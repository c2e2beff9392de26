"""Parameters that depend on each other, across sections."""

from typing import Self

from pydantic import model_validator

from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.tokenization import PreTokenizerParams
from transformer.families.language.evaluate import EvaluateParams
from transformer.families.language.interface import LanguageParams


class Params(StageParams):
    """The sections that depend on each other."""

    model: LanguageParams
    evaluate: EvaluateParams
    tokenize: PreTokenizerParams

    @model_validator(mode="after")
    def _windows_overlap_or_touch(self) -> Self:
        stride, context = self.evaluate.stride, self.model.max_length
        if stride is not None and stride > context:
            raise ValueError(f"evaluate.stride ({stride}) must not be more than model.max_length ({context})")
        return self

    @model_validator(mode="after")
    def _answers_can_be_joined(self) -> Self:
        if self.model.objective == "causal":
            self.tokenize.check_joined("tokenize.kind")
        return self


def check(task: Task, params: Params) -> None:
    """Do nothing: no check depends on the task."""
