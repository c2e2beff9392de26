"""build_vocab: builds the vocabulary and encodes texts and labels."""

from pathlib import Path

from pydantic import field_validator

from transformer.core.observer import Observer
from transformer.core.schema import StageParams
from transformer.core.task import Task, pass_on_labels
from transformer.vocabulary.build import build
from transformer.vocabulary.config import VocabParams


class Params(StageParams):
    """The stage's parameters."""

    vocab: VocabParams

    @field_validator("vocab")
    @classmethod
    def _one_side(cls, vocab: VocabParams) -> VocabParams:
        if vocab.joint:
            raise ValueError("joint must be false: the texts are the only side")
        return vocab


def run(
    task: Task, params: Params, *, tokens: Path, vocab: Path, encoded: Path, statistics: Path, observer: Observer
) -> dict[str, float]:
    """Write the vocabulary, the encoded store and the statistics. Returns the vocabulary sizes."""
    sizes = build(tokens, vocab, encoded, statistics, params.vocab, params.runtime, labelled=True, observer=observer)
    pass_on_labels(tokens, encoded)
    return sizes
