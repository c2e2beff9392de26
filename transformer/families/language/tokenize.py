"""tokenize: pre-tokenizes the texts."""

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.tokenization import PreTokenizerParams
from transformer.data.tokens import tokenize_corpus


class Params(StageParams):
    """The stage's parameters."""

    tokenize: PreTokenizerParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the pre-tokenized corpus to `paths.tokens`. Returns the rows per split."""
    sides = {"text": ("text", params.tokenize)}
    return tokenize_corpus(paths.corpus, paths.tokens, sides, runtime=params.runtime, observer=observer)
