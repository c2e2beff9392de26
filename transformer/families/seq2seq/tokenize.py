"""tokenize: pre-tokenizes the two languages' columns as source and target."""

from typing import Literal, Self

from pydantic import model_validator

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Section, StageParams
from transformer.data.tokenization import PreTokenizerParams
from transformer.data.tokens import Sides, tokenize_corpus

Kind = Literal["spacy", "whitespace", "none"]
Side = Literal["source", "target"]
_SIDES: tuple[Side, ...] = ("source", "target")


class TokenizeParams(Section):
    """`translation.tokenize`."""

    source: str
    """Language to translate from, a column of the corpus."""
    target: str
    """Language to translate into, a column of the corpus."""
    kind: Kind | dict[Side, Kind]
    """spaCy's rules for each language, white space, or raw text for subword vocabularies; for sides that differ,
    `{source: spacy, target: none}`."""
    lowercase: bool
    """Lowercase the text by the rules of its language, so that answers are lowercase as well."""

    @model_validator(mode="after")
    def _two_languages(self) -> Self:
        if self.source == self.target:
            raise ValueError(f"source and target are both `{self.source}`: choose two languages of the corpus")
        if isinstance(self.kind, dict) and len(self.kind) < len(_SIDES):
            raise ValueError("kind must name both sides, such as {source: spacy, target: none}")
        self.side("target")[1].check_joined("the target's kind")
        return self

    def side(self, side: Side) -> tuple[str, PreTokenizerParams]:
        """Return a side's corpus column, which is its language, and its pre-tokenizer parameters."""
        language = self.source if side == "source" else self.target
        kind = self.kind[side] if isinstance(self.kind, dict) else self.kind
        return language, PreTokenizerParams(kind=kind, language=language, lowercase=self.lowercase, html_breaks="keep")


class Params(StageParams):
    """The stage's parameters."""

    tokenize: TokenizeParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the pre-tokenized corpus to `paths.tokens`. Returns the rows per split."""
    sides: Sides = {side: params.tokenize.side(side) for side in _SIDES}
    return tokenize_corpus(paths.corpus, paths.tokens, sides, runtime=params.runtime, observer=observer)
