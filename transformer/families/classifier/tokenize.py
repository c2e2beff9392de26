"""tokenize: pre-tokenizes the texts."""

from pathlib import Path

from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task, pass_on_labels
from transformer.text.pretokenize import PreTokenizerParams
from transformer.text.tokens import tokenize_corpus

ANY_LANGUAGE = {"language": None}
"""Overrides for `tokenize` when the language of the texts is unknown."""


class Params(StageParams):
    """The stage's parameters."""

    tokenize: PreTokenizerParams


def run(task: Task, params: Params, *, corpus: Path, tokens: Path, observer: Observer) -> dict[str, float]:
    """Write the pre-tokenized corpus to `tokens`. Returns the rows per split."""
    sides = {"text": ("text", params.tokenize)}
    counts = tokenize_corpus(corpus, tokens, sides, runtime=params.runtime, observer=observer)
    pass_on_labels(corpus, tokens)
    return counts
