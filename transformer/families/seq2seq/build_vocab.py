"""build_vocab: builds a vocabulary per language and encodes the sentence pairs."""

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.encoding import VocabParams, build


class Params(StageParams):
    """The stage's parameters."""

    vocab: VocabParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the vocabularies, the encoded store and the statistics. Returns the vocabulary sizes."""
    return build(paths, params.vocab, params.runtime, labelled=False, observer=observer)
