"""build_vocab: builds a vocabulary per language and encodes the sentence pairs."""

from pathlib import Path

from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task
from transformer.vocabulary.build import build
from transformer.vocabulary.config import VocabParams


class Params(StageParams):
    """The stage's parameters."""

    vocab: VocabParams


def run(
    task: Task, params: Params, *, tokens: Path, vocab: Path, encoded: Path, statistics: Path, observer: Observer
) -> dict[str, float]:
    """Write the vocabularies, the encoded store and the statistics. Returns the vocabulary sizes."""
    return build(tokens, vocab, encoded, statistics, params.vocab, params.runtime, labelled=False, observer=observer)
