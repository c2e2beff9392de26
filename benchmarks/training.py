"""Training speed of the seed's models: `python -m benchmarks.training`.

Translation in real source and target tokens per second, sentiment in reviews per second. A round is a few batches of
rows drawn from the train split, the same rows for every contender: ours takes them in random batches, the peers, in
fp32, in batches of similar length.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import Contender, Options, Report, Table, isolated, main, measured, rates
from benchmarks.loops import OurLoop, PeerLoop, Sample, contender
from benchmarks.peers.nn_transformer import TorchTranslator
from benchmarks.peers.straightforward import StraightforwardClassifier, StraightforwardTranslator
from benchmarks.translation import open_task, our_training, peer_loop
from benchmarks.workspace import prepared
from transformer.data.store import Ids
from transformer.data.vocabulary import read_vocabularies
from transformer.families.classifier.interface import ClassifierConfig, ClassifierParams
from transformer.families.classifier.texts import EncodedTexts
from transformer.families.classifier.train import ClassifierTraining, Params
from transformer.nn.device import Compute
from transformer.training.batches import CorpusTraining

STRAIGHTFORWARD, NN_TRANSFORMER, MARIAN = "straightforward", "nn.Transformer", "MarianMT"


class Subject(NamedTuple):
    make: Callable[[Compute], CorpusTraining[Any, Any]]
    peer: Callable[[str], PeerLoop]
    sample: Sample
    amount: Callable[[Ids], int]
    """The work in some rows."""


def measure(options: Options) -> Report:
    kinds = {
        "translation": ("source and target tokens/s", (STRAIGHTFORWARD, NN_TRANSFORMER, MARIAN)),
        "sentiment": ("reviews/s", (STRAIGHTFORWARD,)),
    }
    tables = []
    for task, (unit, peers) in kinds.items():
        contenders = _ours(_SUBJECTS[task](options), options)
        contenders |= {name: isolated(peer, task, name, options, threads=options.hardware.threads) for name in peers}
        speeds = rates(measured(contenders, options, warm=False))
        tables.append(Table(f"Training, {task}", unit, speeds, STRAIGHTFORWARD))
    return Report(tables, {"batches a round": options.more.steps})


def _ours(subject: Subject, options: Options) -> dict[str, Contender]:
    computes = {"ours": options.compute, "ours, fp32": Compute(options.compute.device, "fp32")}
    if options.compute.precision == "fp32":
        del computes["ours, fp32"]
    return {
        name: contender(OurLoop(training, training.params, compute), subject.sample.random, subject.amount)
        for name, compute in computes.items()
        for training in [subject.make(compute)]
    }


def peer(task: str, name: str, options: Options) -> Contender:
    subject = _SUBJECTS[task](options)
    return contender(subject.peer(name), subject.sample.bucketed, subject.amount)


def _pairs(options: Options) -> Subject:
    task = open_task(options)

    def peer(name: str) -> PeerLoop:
        if name != MARIAN:
            model = (TorchTranslator if name == NN_TRANSFORMER else StraightforwardTranslator)(task.config)
            return peer_loop(model, task, options.compute.device)
        from benchmarks.peers.marian import MarianTranslator  # takes seconds to import

        return peer_loop(MarianTranslator(task.config, task.vocabularies["target"]), task, options.compute.device)

    sample = Sample(task.train.lengths[:, 0], steps=options.more.steps, batch_size=task.params.train.batch_size)
    return Subject(lambda compute: our_training(task, compute), peer, sample, task.tokens)


def _reviews(options: Options) -> Subject:
    workspace = prepared("sentiment", options.data)
    params, data = workspace.params("sentiment", Params), workspace.data("sentiment")
    vocabulary = read_vocabularies(data / "vocab")["text"]
    config = ClassifierConfig(model=params.model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=2)
    train = EncodedTexts(data / "encoded" / "train", config)

    def peer(name: str) -> PeerLoop:
        assert isinstance(params.model, ClassifierParams)
        model = StraightforwardClassifier(params.model, config.size, config.pad_id, 2)

        def loss(rows: Ids) -> Tensor:
            ids, labels = train.batch(rows, options.compute.device)
            return F.cross_entropy(model(ids), labels)

        return PeerLoop(model, loss, params.train, options.compute.device)

    def make(compute: Compute) -> ClassifierTraining:
        return ClassifierTraining(train, train, params.train, compute, None)

    return Subject(make, peer, Sample(train.lengths, steps=options.more.steps, batch_size=params.train.batch_size), len)


_SUBJECTS = {"translation": _pairs, "sentiment": _reviews}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=4, help="batches per round (default: 4)")


if __name__ == "__main__":
    main("training", __doc__, measure, arguments)
