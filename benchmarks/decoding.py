"""Decoding speed of the seed's model in sentences of the test split per second: `python -m benchmarks.decoding`.

Every contender has the same weights in fp32. The recomputing decoder runs the whole prefix through the decoder at every
step. It is slow, so it gets half a batch of random sentences per round, and `--few` sentences one at a time, which is
how the notebooks decode. Our beam search is exact by default: it continues while a longer hypothesis could still win.
`generate` stops earlier, so ours is also measured with its stopping rule.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from benchmarks import model as subjects
from benchmarks.harness import (
    Clock,
    Contender,
    Options,
    Report,
    Table,
    Target,
    Work,
    main,
    measured,
    rates,
)
from benchmarks.isolated import isolated
from benchmarks.model import Subject, open_subject
from benchmarks.peers import recomputing
from benchmarks.peers.marian import MarianTranslator
from benchmarks.peers.straightforward import load_ours
from benchmarks.translation import straightforward
from transformer.core.observer import Observer
from transformer.encoded.batching import Ids, sorted_batches
from transformer.encoded.tensors import pad
from transformer.families.seq2seq.decoding.decode import decode
from transformer.families.seq2seq.decoding.torch_generator import TorchGenerator

BEAMS = 4
WARM_UP = 8  # the warm-up round takes this fraction (1/8) of a round's sentences
_CHECKED = 64  # sentences compared with the recomputing decoder, which takes half a minute for 400
GREEDY = "Greedy decoding"
BEAM = f"Beam search, {BEAMS} hypotheses"
OURS = "ours"
OURS_SINGLE = "ours, one at a time"
OURS_HEURISTIC = "ours, stops as generate"
MARIAN = "MarianMT generate"
BATCHED = "recomputing, batched"
SINGLE = "recomputing, one at a time"
Targets = list[list[int]]
Decode = Callable[[Sequence[Ids]], Targets]
"""Encoded sources to target ids, in the same order."""


def measure(options: Options) -> Report:
    """Sentences per second, and whether all contenders found the same translations."""
    subject = open_subject(options, options.compute.device)
    decoders = _decoders(subject, options.compute.device)
    greedy, beam = decoders[GREEDY], decoders[BEAM]
    everything, few = subject.sentences, subject.sentences[: options.more.few]
    checks = {
        "greedy, identical to the uncached decoder": _identical(greedy[OURS], greedy[BATCHED], everything[:_CHECKED]),
        "greedy, identical to MarianMT": _identical(greedy[OURS], greedy[MARIAN], everything),
        "beam, identical to the uncached decoder": _identical(beam[OURS], beam[SINGLE], few),
        "beam that stops as MarianMT does, identical to it": _identical(beam[OURS_HEURISTIC], beam[MARIAN], everything),
    }
    mean_length = fmean(len(ids) for ids in greedy[OURS](everything))
    greedy_targets = [Target(OURS, BATCHED, 12.0), Target(OURS, MARIAN, 2.0)]
    beam_targets = [Target(OURS, SINGLE, 12.0), Target(OURS_HEURISTIC, MARIAN, 2.0)]
    return Report(
        [
            _table(GREEDY, subject, greedy, options, greedy_targets),
            _table(BEAM, subject, beam, options, beam_targets),
        ],
        {"model": subject.origin, "sentences": len(everything), "mean target tokens": round(mean_length, 1)} | checks,
    )


def _decoders(subject: Subject, device: torch.device) -> dict[str, dict[str, Decode]]:
    """Greedy decoders and beam searches, all with the subject's weights."""
    uncached, marian = straightforward(subject.model.config), MarianTranslator(subject.model.config, subject.target)
    load_ours(uncached, subject.model)
    marian.load_ours(subject.model)
    for model in (uncached, marian):
        model.to(device).eval()
    limit, size, target = subject.decoding.max_length, subject.decoding.batch_size, subject.target

    def recomputed(batch: Tensor) -> Targets:
        return recomputing.greedy(uncached, batch, target, limit)

    def recomputed_beam(sentence: Tensor) -> Targets:
        return [recomputing.beam(uncached, sentence, target, limit, BEAMS)]

    batched = partial(_batched, pad_id=subject.model.config.source_pad_id, device=device)
    greedy: dict[str, Decode] = {
        OURS: partial(_ours, subject),
        OURS_SINGLE: partial(_ours, subject, batch_size=1),
        MARIAN: partial(batched, partial(marian.generate, beams=1, limit=limit), size),
        BATCHED: partial(batched, recomputed, size),
        SINGLE: partial(batched, recomputed, 1),
    }
    beam: dict[str, Decode] = {
        OURS: partial(_ours, subject, method="beam", beam_size=BEAMS),
        OURS_HEURISTIC: partial(_ours, subject, method="beam", beam_size=BEAMS, stopping="heuristic"),
        MARIAN: partial(batched, partial(marian.generate, beams=BEAMS, limit=limit), size),
        SINGLE: partial(batched, recomputed_beam, 1),
    }
    return {GREEDY: greedy, BEAM: beam}


def _batched(
    function: Callable[[Tensor], Targets], size: int, sources: Sequence[Ids], *, pad_id: int, device: torch.device
) -> Targets:
    """Apply `function` to `size` sources of similar length at a time; results are in the order of the sources."""
    found: Targets = [[] for _ in sources]
    for rows in sorted_batches(np.array([len(source) for source in sources], dtype=np.int64), size):
        batch = pad([sources[row] for row in rows], pad_id).to(device)
        for row, ids in zip(rows, function(batch), strict=True):
            found[row] = ids
    return found


def _ours(subject: Subject, sources: Sequence[Ids], **changes: object) -> Targets:
    params = subject.decoding.model_copy(update={"method": "greedy", "n_best": 1, **changes})
    return [
        found[0].ids
        for found in decode(TorchGenerator(subject.model, subject.target), sources, subject.target, params, Observer())
    ]


def _table(
    title: str, subject: Subject, decoders: dict[str, Decode], options: Options, targets: Sequence[Target]
) -> Table:
    contenders: dict[str, Contender] = {
        name: partial(_work, name, decoder, subject, options)
        if name.startswith(OURS)
        else isolated(peer, title, name, options, threads=options.hardware.threads)
        for name, decoder in decoders.items()
    }
    return Table(title, "sentences/s", rates(measured(contenders, options)), MARIAN, targets)


def peer(title: str, name: str, options: Options) -> Contender:
    """One of a table's decoders."""
    subject = open_subject(options, options.compute.device)
    return partial(_work, name, _decoders(subject, options.compute.device)[title][name], subject, options)


def _work(name: str, decoder: Decode, subject: Subject, options: Options, number: int) -> Work:
    sentences: Sequence[Ids] = subject.sentences
    if name in (SINGLE, OURS_SINGLE, BATCHED):
        count = subject.decoding.batch_size // 2 if name == BATCHED else options.more.few
        drawn = np.random.default_rng([3, number]).permutation(len(sentences))[:count]
        sentences = [sentences[row] for row in drawn]
    if number == 0:
        sentences = sentences[: max(len(sentences) // WARM_UP, 1)]
    clock = Clock(options.compute.device)
    decoder(sentences)
    return Work(len(sentences), clock.elapsed())


def _identical(decoder: Decode, other: Decode, sentences: Sequence[Ids]) -> str:
    same = sum(a == b for a, b in zip(decoder(sentences), other(sentences), strict=True))
    return f"{same} of {len(sentences)}"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    subjects.arguments(parser)
    parser.add_argument("--few", type=int, default=20, help="sentences per round of slow contenders (default: 20)")


if __name__ == "__main__":
    main("decoding", __doc__, measure, arguments=arguments)
