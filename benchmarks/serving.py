"""A translation model in every engine that it is converted to, beside MarianMT's `generate` with the same weights.

`python -m benchmarks.serving [--bundle PATH] [--data PATH]`, on the CPU: sentences per second from text to text, one at
a time, in requests of 32 and with many clients at once; BLEU; and the time and the peak memory of `transformer
translate` for one request of 32. Beam search stops as soon as 4 hypotheses have finished: ours (torch, onnx) with
`stopping: first`, MarianMT with `early_stopping=True`, CTranslate2 by its own rule, which is the same.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import Options, Report, Table, isolated, main, measured
from benchmarks.peers.straightforward import seed_params
from benchmarks.workspace import prepared
from tests.kit import ROOT
from transformer.core.errors import UserError
from transformer.core.files import read_rows
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.scores import text_metrics
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.families.seq2seq.translator import Translator
from transformer.inference.bundle import engines_of, open_bundle

MARIAN, BATCH = "MarianMT generate", 32
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


class Turn(NamedTuple):
    """What a contender does next: so many texts per request, so many requests at once."""

    method: str
    size: int
    clients: int
    texts: Sequence[str]


class Answers(NamedTuple):
    texts: list[str]
    seconds: float


def measure(options: Options) -> Report:
    """The comparison on the first sentences of the test split."""
    bundle, more, threads = options.more.bundle, options.more, options.hardware.threads
    opened, model = open_subject(bundle)
    engines = ["torch", *engines_of(bundle)]
    try:
        seed_params(model.config)
        names = [MARIAN, *engines]
    except UserError as error:
        print(f"  without {MARIAN}: {error}", file=sys.stderr)
        names = engines
    source, target = (str(opened.pretokenizers[side].language) for side in ("source", "target"))
    corpus = prepared("translation", options.data, ("download",)).data("translation") / "corpus" / "test.jsonl"
    rows = list(read_rows(corpus))[: more.sentences]
    if missing := [column for column in (source, target) if column not in rows[0]]:
        raise UserError(f"{bundle} translates {source} to {target}, but {corpus} has no `{missing[0]}`: set --data")
    texts, references = ([row[column] for row in rows] for column in (source, target))
    contenders = {name: isolated(serve, name, bundle, threads, threads=threads) for name in names}
    tables = []
    for method in METHODS:
        turns = {
            "one at a time": Turn(method, 1, 1, texts),
            f"requests of {BATCH}": Turn(method, BATCH, 1, texts),
            f"{more.clients} clients at once": Turn(method, 1, more.clients, texts),
        }
        for kind, turn in turns.items():
            done = measured({name: partial(_take, take, turn) for name, take in contenders.items()}, options)
            values = {name: [len(each.texts) / each.seconds for each in found] for name, found in done.items()}
            tables.append(Table(f"{method}, {kind}", "sentences/s", values, names[0]))
            if turn.size == BATCH:
                cased = not opened.pretokenizers["target"].lowercase
                scores = {name: text_metrics(found[-1].texts, references, cased=cased) for name, found in done.items()}
                metric = next(iter(scores[names[0]]))
                values = {name: [score[metric].score()] for name, score in scores.items()}
                tables.append(Table(f"{method}, quality", metric, values, names[0]))
    return Report([*tables, *_commands(engines, bundle, texts[:BATCH], options)], {"sentences": len(texts)})


def _take(contender: Callable[[Turn], Answers], turn: Turn, number: int) -> Answers:
    return contender(turn)


def serve(name: str, bundle: Path, threads: int) -> Callable[[Turn], Answers]:
    """A contender in its own process."""
    translator = _translator(name, bundle, threads)

    def answer(turn: Turn, first: int) -> list[str]:
        decoding = translator.decoding.model_copy(update=RULE | METHODS[turn.method])
        return translator.translate(turn.texts[first : first + turn.size], decoding=decoding)

    def take(turn: Turn) -> Answers:
        started = time.perf_counter()
        with ThreadPoolExecutor(turn.clients) as pool:
            found = list(pool.map(partial(answer, turn), range(0, len(turn.texts), turn.size)))
        elapsed = time.perf_counter() - started
        return Answers([text for texts in found for text in texts], elapsed)

    return take


def _translator(name: str, bundle: Path, threads: int) -> Translator:
    if name != MARIAN:
        opened = open_bundle(bundle, "cpu", name, threads)
        assert isinstance(opened, Translator)
        return opened
    from benchmarks.peers.marian import MarianDecoder, MarianTranslator  # takes seconds to import

    ours, model = open_subject(bundle)
    marian = MarianTranslator(model.config, ours.vocabularies["target"])
    marian.load_ours(model)
    return Translator(MarianDecoder(marian.marian.eval()), ours.vocabularies, bundle, ours.decoding)


def _commands(names: Sequence[str], bundle: Path, texts: Sequence[str], options: Options) -> list[Table]:
    """Each engine's command for one request, by beam search: seconds from its start to its end, and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        request = Path(folder, "request.txt")
        request.write_text("\n".join(texts), encoding="utf-8")

        def run(name: str, number: int) -> tuple[float, float]:
            peak, own = str(ROOT / "benchmarks" / "peak.py"), str(Path(sys.executable).with_name("transformer"))
            asked = ("translate", "--model", str(bundle), "--engine", name, "--beam", "4", "--file", str(request))
            done = subprocess.run((sys.executable, peak, own, *asked), capture_output=True, text=True, check=False)
            if done.returncode:
                raise UserError(f"{name} did not answer: {done.stderr.strip()}")
            seconds, megabytes = json.loads(done.stdout.splitlines()[-1])
            return seconds, megabytes

        done = measured({name: partial(run, name) for name in names}, options)
    title = f"`transformer translate --beam 4`, {len(texts)} sentences"
    return [
        Table(title, unit, {name: [each[place] for each in found] for name, found in done.items()}, names[0])
        for place, unit in enumerate(("s", "MB"))
    ]


def open_subject(bundle: Path) -> tuple[TorchTranslator, Seq2SeqTransformer]:
    """The bundle's translator and its network. Raises UserError if that is not a Transformer."""
    opened = open_bundle(bundle, "cpu")
    if isinstance(opened, TorchTranslator) and isinstance(opened.model, Seq2SeqTransformer):
        return opened, opened.model
    raise UserError(f"{bundle} is not a translation Transformer: name such a bundle with --bundle")


def arguments(parser: argparse.ArgumentParser) -> None:
    default = ROOT / "models" / "translation" / "bundle"
    parser.add_argument("--bundle", type=Path, default=default, help="an exported model (default: the workspace's)")
    parser.add_argument("--sentences", type=int, default=192, help="first sentences of the test split (default: 192)")
    parser.add_argument("--clients", type=int, default=20, help="parallel clients (default: 20)")


if __name__ == "__main__":
    main("serving", __doc__, measure, arguments)
