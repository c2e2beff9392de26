"""tokenize: pre-tokenizes the two languages' columns as source and target."""

from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from transformer.core.observer import Observer
from transformer.core.schema import Section, StageParams
from transformer.core.task import Task
from transformer.text.pretokenize import PreTokenizerParams
from transformer.text.tokens import tokenize_corpus


class TokenizeParams(Section):
    """`translation.tokenize`."""

    source: str
    """The language to translate from, a column of the corpus."""
    target: str
    """The language to translate into, a column of the corpus."""
    kind: Literal["spacy", "whitespace", "none"]
    """spaCy's rules of each language, white space, or raw text for subword vocabularies."""
    lowercase: bool
    """Lowercase the text, so that answers are lowercase as well."""

    @model_validator(mode="after")
    def _two_languages(self) -> Self:
        if self.source == self.target:
            raise ValueError(f"source and target are both `{self.source}`: choose two languages of the corpus")
        return self

    def side(self, language: str) -> tuple[str, PreTokenizerParams]:
        """A language's column in the corpus, and how to split it."""
        return language, PreTokenizerParams(kind=self.kind, language=language, lowercase=self.lowercase)


class Params(StageParams):
    """The stage's parameters."""

    tokenize: TokenizeParams


def run(task: Task, params: Params, *, corpus: Path, tokens: Path, observer: Observer) -> dict[str, float]:
    """Write the pre-tokenized corpus to `tokens`. Returns the rows per split."""
    sides = {
        "source": params.tokenize.side(params.tokenize.source),
        "target": params.tokenize.side(params.tokenize.target),
    }
    return tokenize_corpus(corpus, tokens, sides, workers=params.runtime.workers, observer=observer)
