"""One translation model in every engine that serves it, beside MarianMT's `generate` with the same weights, on the CPU:
`python -m benchmarks.serving [--bundle PATH] [--data PATH]`.

The time from raw text to raw text: latency of single sentences, sentences per second in requests of 32 and with many
clients at once; the time from a process's start to its first answer, the peak memory, the size and BLEU.

Beam search stops as soon as 4 hypotheses have finished: ours (torch, onnx) with `stopping: first`, MarianMT with
`early_stopping=True`, CTranslate2 by its own rule, which is the same.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Options, Report, Table, Target, Work, main, measured, seconds
from benchmarks.isolated import isolated
from benchmarks.served import BATCH, BUNDLE, CONTENDERS, MARIAN, METHODS, answer, open_contender
from benchmarks.workspace import ROOT, prepared
from transformer.conversion.parts import sizes
from transformer.core.errors import UserError
from transformer.core.files import copy_folder, read_rows, write_json
from transformer.export.bundle import open_bundle
from transformer.export.converted import CONVERTED, ENGINES, INT8, MODEL, size_of, write_surroundings
from transformer.families.seq2seq.conversion.ctranslate2_model import write_ctranslate2
from transformer.families.seq2seq.conversion.onnx_model import write_onnx
from transformer.families.seq2seq.decoding.with_torch import TorchTranslator
from transformer.families.seq2seq.evaluation.scores import text_metrics
from transformer.families.seq2seq.nn.model import Seq2SeqTransformer
from transformer.results.workspace import md5_of_folder

WANTED = {"greedy": (1.6, 2.0), "beam 4": (2.5, 3.5)}
"""CTranslate2's sentences per second over those of `generate`, float32 and int8."""
ALLOWED_LOSS = 0.3
"""BLEU that 8 bits may cost."""
SINGLE, BATCHED, CLIENTS = "one at a time", f"requests of {BATCH}", "clients at once"


class Pairs(NamedTuple):
    """Sentences and their translations by people."""

    texts: list[str]
    references: list[str]


class Turn(NamedTuple):
    """What an engine does next."""

    method: str
    kind: str
    """SINGLE, BATCHED or CLIENTS."""


class Answers(NamedTuple):
    """What it did."""

    texts: list[str]
    latencies: list[float]
    """Seconds of each request; empty with many clients."""
    seconds: float


def measure(options: Options) -> Report:
    """The comparison on the first sentences of the test split."""
    bundle = options.more.bundle
    opened = open_subject(bundle)
    columns = [str(opened.pretokenizers[side].language) for side in ("source", "target")]
    corpus = prepared("translation", options.data, ("download",)).data("translation") / "corpus" / "test.jsonl"
    rows = list(read_rows(corpus))[: options.more.sentences]
    if missing := [column for column in columns if column not in rows[0]]:
        raise UserError(f"{bundle} translates {' to '.join(columns)}, but {corpus} has no `{missing[0]}`: set --data")
    return compare(opened, bundle, Pairs(*([row[column] for row in rows] for column in columns)), options)


def compare(opened: TorchTranslator, bundle: Path, pairs: Pairs, options: Options) -> Report:
    """Measure the engines of `options.more` with a bundle, which is `opened`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names, notes = _laid_out(opened, bundle, folder, options.more.engines)
        more, threads = options.more, options.hardware.threads
        processes = {
            name: isolated(serve, name, folder, threads, pairs.texts, more.single, more.clients, threads=threads)
            for name in names
        }
        tables = []
        for method in METHODS:
            found, checks = _measured(processes, method, opened, pairs, options)
            tables += found
            notes |= checks
        tables += _fresh(names, folder, pairs, options)
        sizes = {name: [size_of(_weights(name, folder)) / 1e6] for name in names}
        tables.append(Table("Size of the model", "MB", sizes, names[0]))
    rules = "4 finished hypotheses (ours `first`, early_stopping=True, CTranslate2's own)"
    return Report(
        tables,
        {"bundle (MD5)": md5_of_folder(bundle), "sentences": len(pairs.texts), "beam 4 stops after": rules} | notes,
    )


def serve(
    name: str, folder: Path, threads: int, texts: Sequence[str], single: int, clients: int
) -> Callable[[Turn], Answers]:
    """An engine in its own process."""
    translator = open_contender(name, folder, threads)

    def take(turn: Turn) -> Answers:
        found: list[list[str]] = []
        latencies = []
        size, chosen = (1, texts[:single]) if turn.kind == SINGLE else (BATCH, texts)
        started = time.perf_counter()
        if turn.kind == CLIENTS:
            with ThreadPoolExecutor(clients) as pool:
                found = list(pool.map(lambda text: answer(translator, [text], turn.method), texts))
        else:
            for first in range(0, len(chosen), size):
                asked = time.perf_counter()
                found.append(answer(translator, chosen[first : first + size], turn.method))
                latencies.append(time.perf_counter() - asked)
        elapsed = time.perf_counter() - started
        return Answers([text for texts in found for text in texts], latencies, elapsed)

    return take


def _measured(
    processes: Mapping[str, Callable[[Turn], Answers]],
    method: str,
    opened: TorchTranslator,
    pairs: Pairs,
    options: Options,
) -> tuple[list[Table], dict[str, object]]:
    """The tables of a method; how many translations are those of the first contender, and what 8 bits cost."""
    names = list(processes)
    done = {
        kind: measured({name: _contender(processes[name], Turn(method, kind)) for name in names}, options)
        for kind in (SINGLE, BATCHED, CLIENTS)
    }
    tables = []
    for percent in (50, 95):
        values = {
            name: [float(np.percentile(each.latencies, percent)) * 1000 for each in found]
            for name, found in done[SINGLE].items()
        }
        tables.append(Table(f"{method}, {SINGLE}, p{percent}", "ms", values, names[0]))
    for kind in (BATCHED, CLIENTS):
        values = {name: [len(each.texts) / each.seconds for each in found] for name, found in done[kind].items()}
        title = f"{options.more.clients} {kind}" if kind == CLIENTS else kind
        targets = _targets(method, names) if kind == BATCHED else ()
        tables.append(Table(f"{method}, {title}", "sentences/s", values, names[0], targets))
    answers = {name: found[-1].texts for name, found in done[BATCHED].items()}
    cased = not opened.pretokenizers["target"].lowercase
    scores = {}
    for name, texts in answers.items():
        metric, scored = next(iter(text_metrics(texts, pairs.references, cased=cased).items()))
        scores[name] = [scored.score()]
    tables.append(Table(f"{method}, quality", metric, scores, names[0]))
    same = {name: sum(a == b for a, b in zip(texts, answers[names[0]], strict=True)) for name, texts in answers.items()}
    of_float32 = {name: name.removesuffix(INT8) for name in names if name.endswith(INT8)}
    lost = {name: round(scores[whole][0] - scores[name][0], 2) for name, whole in of_float32.items() if whole in scores}
    return tables, {
        f"{method}, identical to {names[0]}": {name: f"{n} of {len(pairs.texts)}" for name, n in same.items()},
        f"{method}, {metric} lost by 8 bits (wanted: at most {ALLOWED_LOSS})": lost,
    }


def _contender(process: Callable[[Turn], Answers], turn: Turn) -> Callable[[int], Answers]:
    return lambda number: process(turn)


def _targets(method: str, names: Sequence[str]) -> list[Target]:
    wanted = zip(("ctranslate2", f"ctranslate2{INT8}"), WANTED[method], strict=True)
    return [Target(name, MARIAN, least) for name, least in wanted if {name, MARIAN} <= set(names)]


def _fresh(names: Sequence[str], folder: Path, pairs: Pairs, options: Options) -> list[Table]:
    """Processes that answer one request and end."""
    first, request = folder / "first.json", folder / "request.json"
    write_json(first, pairs.texts[:1])
    write_json(request, pairs.texts[:BATCH])
    loaded = measured(
        {name: partial(_process, name, folder, "greedy", first, options.hardware.threads) for name in names}, options
    )
    full = measured(
        {name: partial(_process, name, folder, "beam 4", request, options.hardware.threads) for name in names},
        options,
        warm=False,
    )
    peaks = {name: [work.amount for work in works] for name, works in full.items()}
    return [
        Table("A process from its start to the first answer", "s", seconds(loaded), names[0]),
        Table(f"Peak memory, beam 4, one request of {BATCH}", "MB", peaks, names[0]),
    ]


def _process(name: str, folder: Path, method: str, texts: Path, threads: int, number: int) -> Work:
    """Seconds, and megabytes as the amount."""
    served = (sys.executable, "-m", "benchmarks.served", name, str(folder), str(threads), method, str(texts))
    command = (sys.executable, str(ROOT / "benchmarks" / "peak.py"), *served)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{name} did not answer: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    elapsed, peak = json.loads(done.stdout.splitlines()[-1])
    return Work(peak, elapsed)


def open_subject(bundle: Path) -> TorchTranslator:
    """The bundle's translator. Raises UserError if it is not a Transformer."""
    opened = open_bundle(bundle, "cpu")
    if not isinstance(opened, TorchTranslator) or not isinstance(opened.model, Seq2SeqTransformer):
        raise UserError(f"{bundle} is not a translation Transformer: name such a bundle with --bundle")
    return opened


def _laid_out(
    opened: TorchTranslator, bundle: Path, folder: Path, engines: Sequence[str]
) -> tuple[list[str], dict[str, object]]:
    """Write the model for every engine into `folder`; which ones can hold it, and a note on the one that cannot."""
    model, source, target = opened.model, opened.vocabularies["source"], opened.vocabularies["target"]
    assert isinstance(model, Seq2SeqTransformer)  # see open_subject
    copy_folder(bundle, folder / BUNDLE)
    for name in [name for name in ENGINES[1:] if name in engines]:
        print(f"  converting to {name}", file=sys.stderr)
        write = write_ctranslate2 if name.startswith("ctranslate2") else write_onnx
        place = folder / CONVERTED / name
        write(place / MODEL, model, source, target, int8=name.endswith(INT8))
        recorded = sizes(opened.vocabularies, opened.generator.positions)
        write_surroundings(place, folder / BUNDLE, engine=name, model=recorded, example="")
    names = [name for name in CONTENDERS if name in engines]
    if MARIAN in names:
        from benchmarks.peers.marian import MarianTranslator  # takes seconds to import

        try:
            marian = MarianTranslator(model.config, target)
        except UserError as error:
            return names[1:], {f"without {MARIAN}": str(error)}
        marian.load_ours(model)
        marian.save(folder / MARIAN)
    return names, {}


def _weights(name: str, folder: Path) -> Path:
    """The folder of a contender's weights."""
    if name == MARIAN:
        return folder / MARIAN
    return (folder / BUNDLE if name == "torch" else folder / CONVERTED / name) / MODEL


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    default = ROOT / "models" / "translation" / "bundle"
    parser.add_argument("--bundle", type=Path, default=default, help="an exported model (default: the workspace's)")
    parser.add_argument("--engines", nargs="+", choices=CONTENDERS, default=CONTENDERS, help="default: all")
    parser.add_argument("--sentences", type=int, default=192, help="first sentences of the test split (default: 192)")
    parser.add_argument("--single", type=int, default=50, help="of them one at a time (default: 50)")
    parser.add_argument("--clients", type=int, default=20, help="parallel clients (default: 20)")


if __name__ == "__main__":
    main("serving", __doc__, measure, arguments=arguments)
