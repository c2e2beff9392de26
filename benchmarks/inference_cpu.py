"""Comparison with CTranslate2 with the same weights on the CPU, in sentences of the test split per second: `python -m
benchmarks.inference_cpu`.

CTranslate2 is an inference engine in C++; ours is PyTorch in fp32. Both sort the sentences by length and use the same
batch size. Beam search of both stops as soon as 4 hypotheses have finished, which is CTranslate2's rule: ours has
`stopping: first`.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks import model as subjects
from benchmarks.harness import Clock, Contender, Options, Report, Table, Work, main, measured, rates
from benchmarks.isolated import isolated
from benchmarks.model import Subject, open_subject
from transformer.core.observer import Observer
from transformer.families.seq2seq.conversion.ctranslate2_decoder import CTranslate2Decoder
from transformer.families.seq2seq.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.seq2seq.decoding.decode import Search
from transformer.families.seq2seq.decoding.torch_generator import TorchGenerator
from transformer.families.seq2seq.decoding.translator import Decoder

CPU = torch.device("cpu")
OURS = "ours, fp32"
ENGINES = {"CTranslate2, fp32": "ctranslate2", "CTranslate2, int8": "ctranslate2-int8"}
"""The folder of each, as `convert` names them."""
METHODS = {"Greedy decoding": 1, "Beam search, 4 hypotheses": 4}
Decode = Callable[[], list[list[int]]]
"""The target ids of all sentences."""


def measure(options: Options) -> Report:
    """Sentences per second, and how many translations were identical."""
    subject = open_subject(options, CPU)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for engine in ENGINES.values():
            write_ctranslate2(
                folder / engine, subject.model, subject.source, subject.target, int8=engine.endswith("int8")
            )
        tables = [_table(title, folder, subject, options) for title in METHODS]
        identical = {
            f"{title}, {label}": _identical(_theirs(title, label, folder, subject, options), _ours(title, subject))
            for title in METHODS
            for label in ENGINES
        }
    return Report(
        tables, {"model": subject.origin, "sentences": len(subject.sentences), "identical to ours": identical}
    )


def _table(title: str, folder: Path, subject: Subject, options: Options) -> Table:
    ours: Contender = partial(_work, _ours(title, subject), len(subject.sentences))
    theirs = {
        label: isolated(peer, title, label, folder, options, threads=options.hardware.threads) for label in ENGINES
    }
    return Table(title, "sentences/s", rates(measured({OURS: ours} | theirs, options)), OURS)


def peer(title: str, label: str, folder: Path, options: Options) -> Contender:
    """One of ENGINES."""
    subject = open_subject(options, CPU)
    return partial(_work, _theirs(title, label, folder, subject, options), len(subject.sentences))


def _ours(title: str, subject: Subject) -> Decode:
    generator = TorchGenerator(subject.model, subject.target)
    return partial(_decoded, Search(generator, subject.target), title, subject)


def _theirs(title: str, label: str, folder: Path, subject: Subject, options: Options) -> Decode:
    positions = TorchGenerator(subject.model, subject.target).positions
    engine = CTranslate2Decoder(
        folder / ENGINES[label],
        subject.source,
        subject.target,
        positions=positions,
        threads=options.hardware.threads,
    )
    return partial(_decoded, engine, title, subject)


def _decoded(decoder: Decoder, title: str, subject: Subject) -> list[list[int]]:
    beams = METHODS[title]
    method = "greedy" if beams == 1 else "beam"
    changes = {"method": method, "beam_size": beams, "n_best": 1, "stopping": "first"}
    params = subject.decoding.model_copy(update=changes)
    return [found[0].ids for found in decoder(subject.sentences, params, Observer(), None)]


def _identical(decoder: Decode, other: Decode) -> str:
    expected = other()
    return f"{sum(a == b for a, b in zip(decoder(), expected, strict=True))} of {len(expected)}"


def _work(decoder: Decode, sentences: int, number: int) -> Work:
    clock = Clock(CPU)
    decoder()
    return Work(sentences, clock.elapsed())


if __name__ == "__main__":
    main("inference_cpu", __doc__, measure, arguments=subjects.arguments)
