"""Decoding speed in sentences of the test split per second: `python -m benchmarks.decoding`.

The seed's model after a short training, so that outputs have realistic lengths; every contender has its weights in
fp32. Beam search stops as soon as 4 hypotheses have finished: CTranslate2's rule, ours with `stopping: first`,
MarianMT's with `early_stopping=True`.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.harness import Options, Report, Table, isolated, main, measured, now
from benchmarks.loops import OurLoop
from benchmarks.translation import open_task, our_training
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.families.seq2seq.decode import Search
from transformer.families.seq2seq.engines import CTranslate2Decoder
from transformer.families.seq2seq.evaluate import Params as EvaluateParams
from transformer.families.seq2seq.formats import write_ctranslate2
from transformer.families.seq2seq.network import Seq2SeqTransformer
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.families.seq2seq.translator import Decoder
from transformer.nn.trained import save_trained, unique_state
from transformer.training.batches import random_batches

METHODS = {"Greedy decoding": "greedy", "Beam search, 4 hypotheses": "beam"}
OURS, MARIAN, CTRANSLATE2 = "ours", "MarianMT generate", "CTranslate2, fp32"


class Decoded(NamedTuple):
    ids: list[list[int]]
    seconds: float


def measure(options: Options) -> Report:
    """Sentences per second, and how many translations are the same as ours."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train_briefly(folder, options)
        contenders = {OURS: contender(OURS, folder, options)} | {
            name: isolated(contender, name, folder, options, threads=options.hardware.threads)
            for name in (MARIAN, CTRANSLATE2)
        }
        done = {
            title: measured({name: partial(_take, take, method) for name, take in contenders.items()}, options)
            for title, method in METHODS.items()
        }
    tables, notes = [], {"model": f"{options.more.train_steps} updates"}
    for title, by_name in done.items():
        speeds = {name: [len(each.ids) / each.seconds for each in found] for name, found in by_name.items()}
        tables.append(Table(title, "sentences/s", speeds, MARIAN))
        answers = {name: found[-1].ids for name, found in by_name.items()}
        for name, ids in answers.items():
            same = sum(a == b for a, b in zip(ids, answers[OURS], strict=True))
            length = fmean(len(each) for each in ids)
            notes[f"{title}, {name}"] = f"{same} of {len(ids)} as ours, {length:.1f} tokens in the mean"
    return Report(tables, notes)


def _take(contender: Callable[[str], Decoded], method: str, number: int) -> Decoded:
    return contender(method)


def contender(name: str, folder: Path, options: Options) -> Callable[[str], Decoded]:
    """Decodes the sentences by a method; folder: of the trained model."""
    task, device = open_task(options), options.compute.device
    data = task.workspace.data("translation")
    decoding = task.workspace.params("translation", EvaluateParams).evaluate
    translator = TorchTranslator(folder, data / "vocab", data / "tokens", decoding, device)
    language = str(translator.pretokenizers["source"].language)
    rows = islice(read_rows(data / "corpus" / "test.jsonl"), options.more.sentences)
    sentences = translator.vocabularies["source"].encode(translator.pretokenize(row[language] for row in rows))
    decoder = _decoder(name, translator, options)

    def take(method: str) -> Decoded:
        changes = {"method": method, "beam_size": 4, "n_best": 1, "stopping": "first"}
        started = now(device)
        found = decoder(sentences, decoding.model_copy(update=changes), Observer(), None)
        return Decoded([hypotheses[0].ids for hypotheses in found], now(device) - started)

    return take


def _decoder(contender: str, translator: TorchTranslator, options: Options) -> Decoder:
    model, (source, target) = translator.model, (translator.vocabularies[side] for side in ("source", "target"))
    assert isinstance(model, Seq2SeqTransformer)
    if contender == OURS:
        return Search(translator.generator, source, target)
    if contender == CTRANSLATE2:
        positions, threads = translator.generator.positions, options.hardware.threads
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "model")
            write_ctranslate2(folder, model, source, target, int8=False)
            return CTranslate2Decoder(folder, source, target, positions=positions, threads=threads)
    from benchmarks.peers.marian import MarianDecoder, MarianTranslator  # takes seconds to import

    marian = MarianTranslator(model.config, target)
    marian.load_ours(model)
    return MarianDecoder(marian.marian.to(options.compute.device).eval())


def train_briefly(folder: Path, options: Options) -> None:
    """Write the seed's model after some updates."""
    task, steps = open_task(options), options.more.train_steps
    print(f"  training for {steps} updates", file=sys.stderr)
    training = our_training(task, options.compute)
    batches = random_batches(task.train.lengths.max(axis=1), task.params.train, 1)
    OurLoop(training, task.params.train, options.compute).steps((batches * -(-steps // len(batches)))[:steps])
    state = {name: tensor.detach().cpu() for name, tensor in unique_state(training.model).items()}
    save_trained(folder, task.config, state)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--train-steps", type=int, default=150, help="updates of the short training (default: 150)")
    parser.add_argument("--sentences", type=int, default=400, help="first sentences of the test split (default: 400)")


if __name__ == "__main__":
    main("decoding", __doc__, measure, arguments)
