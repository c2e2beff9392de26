"""build_vocab: one vocabulary, and the labels."""

from pathlib import Path

from transformer.observer import Observer
from transformer.params.schema import StageParams
from transformer.text.build import build
from transformer.text.vocabulary_config import VocabParams


class Params(StageParams):
    """What the stage reads."""

    vocab: VocabParams


def run(
    params: Params, *, tokens: Path, vocab: Path, encoded: Path, statistics: Path, observer: Observer
) -> dict[str, float]:
    """Write the vocabularies, the encoded store and the statistics. Returns the vocabulary sizes."""
    return build(tokens, vocab, encoded, statistics, params.vocab, labelled=True, observer=observer)
