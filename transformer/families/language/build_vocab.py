"""build_vocab: builds the vocabulary and encodes the texts."""

from pydantic import field_validator

from transformer.core.files import copy_file
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.data.encoding import VocabParams, build
from transformer.data.tokenization import PRETOKENIZERS


class Params(StageParams):
    """The stage's parameters."""

    vocab: VocabParams

    @field_validator("vocab")
    @classmethod
    def _one_side_as_it_is(cls, vocab: VocabParams) -> VocabParams:
        if vocab.joint:
            raise ValueError("joint must be false: the texts are the only side")
        if vocab.bpe_dropout:
            raise ValueError("bpe_dropout must be 0: windows are cut before training, at tokens")
        return vocab


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the vocabulary, the encoded store and the statistics. Returns the vocabulary size.

    The pre-tokenizer settings are copied next to the vocabulary, so that tasks that reuse it can check their own.
    """
    sizes = build(paths, params.vocab, params.runtime, labelled=False, observer=observer)
    copy_file(paths.tokens / PRETOKENIZERS, paths.vocab / PRETOKENIZERS)
    return sizes
