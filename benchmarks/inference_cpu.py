"""Comparison with CTranslate2 with the same weights on the CPU, in sentences of the test split per second: `python -m
benchmarks.inference_cpu`.

CTranslate2 is an inference engine in C++; ours is PyTorch in fp32. Both sort the sentences by length and use the same
batch size.
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
from benchmarks.peers.ctranslate2_model import CTranslate2Translator, convert
from transformer.core.observer import Observer
from transformer.families.seq2seq.decoding.decode import decode
from transformer.families.seq2seq.decoding.torch_generator import TorchGenerator

CPU = torch.device("cpu")
OURS = "ours, fp32"
ENGINES = {"CTranslate2, fp32": "float32", "CTranslate2, int8": "int8"}
METHODS = {"Greedy decoding": 1, "Beam search, 4 hypotheses": 4}
Decode = Callable[[], list[list[int]]]
"""The target ids of all sentences."""


def measure(options: Options) -> Report:
    """Sentences per second, and how many translations were identical."""
    subject = open_subject(options, CPU)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "model")
        convert(subject.model, subject.source, subject.target, folder)
        tables = [_table(title, folder, subject, options) for title in METHODS]
        identical = {
            f"{title}, {label}": _identical(_decoder(title, label, folder, subject, options), subject, beams)
            for title, beams in METHODS.items()
            for label in ENGINES
        }
    return Report(
        tables, {"model": subject.origin, "sentences": len(subject.sentences), "identical to ours": identical}
    )


def _table(title: str, folder: Path, subject: Subject, options: Options) -> Table:
    ours: Contender = partial(_work, partial(_ours, subject, METHODS[title]), len(subject.sentences))
    theirs = {
        label: isolated(peer, title, label, folder, options, threads=options.hardware.threads) for label in ENGINES
    }
    return Table(title, "sentences/s", rates(measured({OURS: ours} | theirs, options)), OURS)


def peer(title: str, label: str, folder: Path, options: Options) -> Contender:
    """One of ENGINES."""
    subject = open_subject(options, CPU)
    return partial(_work, _decoder(title, label, folder, subject, options), len(subject.sentences))


def _decoder(title: str, label: str, folder: Path, subject: Subject, options: Options) -> Decode:
    engine = CTranslate2Translator(
        folder, subject.source, subject.target, compute=ENGINES[label], threads=options.hardware.threads
    )
    params = subject.decoding
    return partial(
        engine.decode, subject.sentences, beams=METHODS[title], limit=params.max_length, batch_size=params.batch_size
    )


def _identical(decoder: Decode, subject: Subject, beams: int) -> str:
    expected = _ours(subject, beams)
    return f"{sum(a == b for a, b in zip(decoder(), expected, strict=True))} of {len(expected)}"


def _ours(subject: Subject, beams: int) -> list[list[int]]:
    method = "greedy" if beams == 1 else "beam"
    params = subject.decoding.model_copy(update={"method": method, "beam_size": beams, "n_best": 1})
    return [
        found[0].ids
        for found in decode(
            TorchGenerator(subject.model, subject.target), subject.sentences, subject.target, params, Observer()
        )
    ]


def _work(decoder: Decode, sentences: int, number: int) -> Work:
    clock = Clock(CPU)
    decoder()
    return Work(sentences, clock.elapsed())


if __name__ == "__main__":
    main("inference_cpu", __doc__, measure, arguments=subjects.arguments)
