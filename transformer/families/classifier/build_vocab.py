"""build_vocab: builds the vocabulary and encodes texts and labels."""

from pydantic import field_validator

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, pass_on_labels
from transformer.core.validation import StageParams
from transformer.data.encoding import VocabParams, build


class Params(StageParams):
    """The stage's parameters."""

    vocab: VocabParams

    @field_validator("vocab")
    @classmethod
    def _one_side(cls, vocab: VocabParams) -> VocabParams:
        if vocab.joint:
            raise ValueError("joint must be false: the texts are the only side")
        return vocab


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the vocabulary, the encoded store and the statistics. Returns the vocabulary sizes."""
    sizes = build(paths, params.vocab, params.runtime, labelled=True, observer=observer)
    pass_on_labels(paths.tokens, paths.encoded)
    return sizes
