"""A translation model in one of several engines, answering raw texts. In a fresh process, for its load time and memory:
`python -m benchmarks.served ENGINE FOLDER THREADS METHOD TEXTS`, where TEXTS is a JSON file with a list of texts.

Imports no engine before it is asked for.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer.core.files import read_json
from transformer.core.validation import validate
from transformer.encoded.vocabulary import read_vocabularies
from transformer.export.bundle import CONFIG, VOCAB, open_bundle
from transformer.export.converted import ENGINES
from transformer.families.seq2seq.decoding.config import DecodingParams
from transformer.families.seq2seq.decoding.translator import Translator

BUNDLE, MARIAN = "bundle", "MarianMT generate"
CONTENDERS = (MARIAN, *ENGINES)
BATCH = 32
METHODS: dict[str, dict[str, Any]] = {"greedy": {"method": "greedy"}, "beam 4": {"method": "beam", "beam_size": 4}}
RULE: dict[str, Any] = {
    "n_best": 1,
    "stopping": "first",
    "length_normalization": "length",
    "length_penalty": 1.0,
    "no_repeat_ngram": None,
    "mbr_utility": "none",
    "max_length_ratio": None,
    "long_sources": "cut",
    "batch_size": BATCH,
}
"""What all contenders can follow; where the bundle decodes otherwise, this holds."""


def open_contender(name: str, folder: Path, threads: int) -> Translator:
    """One of CONTENDERS. folder: of the bundle, with the converted models and MarianMT's beside it."""
    bundle = folder / BUNDLE
    if name in (MARIAN, "torch"):
        import torch

        torch.set_num_threads(threads)
    if name != MARIAN:
        opened = open_bundle(bundle, "cpu", name, threads)
        assert isinstance(opened, Translator)
        return opened
    from benchmarks.peers.marian import MarianDecoder

    decoding = validate(
        DecodingParams, read_json(bundle / CONFIG)["decoding"], where=bundle / CONFIG, prefix="decoding"
    )
    return Translator(
        MarianDecoder(folder / MARIAN), read_vocabularies(bundle / VOCAB, "source", "target"), bundle, decoding
    )


def answer(translator: Translator, texts: Sequence[str], method: str) -> list[str]:
    """The translations of one request; method: of METHODS."""
    return translator.translate(texts, decoding=translator.decoding.model_copy(update=RULE | METHODS[method]))


if __name__ == "__main__":
    _name, _folder, _threads, _method, _texts = sys.argv[1:]
    print(answer(open_contender(_name, Path(_folder), int(_threads)), read_json(Path(_texts)), _method)[0])
