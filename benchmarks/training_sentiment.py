"""Training speed of the seed's sentiment model in reviews per second: `python -m benchmarks.training_sentiment`.

A round is `--steps` batches of reviews drawn from the train split, the same for every contender: ours takes them in
random batches; the straightforward model, in fp32, in random batches and in batches of similar length.
"""

import argparse
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import Contender, Options, Report, Table, Target, main, measured, rates
from benchmarks.isolated import isolated
from benchmarks.peers.straightforward import StraightforwardClassifier
from benchmarks.training import OurLoop, PeerLoop, Sample, contender
from benchmarks.workspace import prepared
from transformer.checkpoint.device import Compute
from transformer.encoded.batching import Ids
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams
from transformer.families.classifier.train import ClassifierTraining, Params
from transformer.nn.layers import count_parameters

OURS = "ours"
RANDOM = "straightforward, random"
BUCKETED = "straightforward, bucketed"


class Task(NamedTuple):
    """The training data and parameters."""

    params: Params
    config: ClassifierConfig
    train: EncodedTexts
    sample: Sample


def measure(options: Options) -> Report:
    """Reviews per second of each contender."""
    task = _open_task(options)
    computes = {OURS: options.compute}
    if options.compute.precision != "fp32":
        computes["ours, fp32"] = Compute(options.compute.device, "fp32")
    trainings = {
        name: ClassifierTraining(task.train, task.train, task.params.train, compute, None)
        for name, compute in computes.items()
    }
    contenders = {
        name: contender(OurLoop(training, task.params.train, training.compute), task.sample.random, len)
        for name, training in trainings.items()
    } | {name: isolated(peer, name, options, threads=options.hardware.threads) for name in (RANDOM, BUCKETED)}
    speeds = rates(measured(contenders, options, warm=False))
    targets = [Target(OURS, RANDOM, 14.0), Target(OURS, BUCKETED, 7.0)]
    parameters = {OURS: count_parameters(trainings[OURS].model), RANDOM: count_parameters(_model(task))}
    return Report(
        [Table("Training, sentiment", "reviews/s", speeds, RANDOM, targets)],
        {"batches a round": options.more.steps, "parameters": parameters},
    )


def peer(name: str, options: Options) -> Contender:
    """The straightforward model, with the batching that `name` says."""
    task, device = _open_task(options), options.compute.device
    model = _model(task)

    def loss(rows: Ids) -> Tensor:
        ids, labels = task.train.batch(rows, device)
        return F.cross_entropy(model(ids), labels)

    batches = task.sample.random if name == RANDOM else task.sample.bucketed
    return contender(PeerLoop(model, loss, task.params.train, device), batches, len)


def _open_task(options: Options) -> Task:
    workspace = prepared("sentiment", options.data)
    params = workspace.params("sentiment", Params)
    vocabulary = read_vocabularies(workspace.data("sentiment") / "vocab")["text"]
    config = ClassifierConfig(model=params.model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=2)
    train = EncodedTexts(workspace.data("sentiment") / "encoded" / "train", config)
    sample = Sample(train.lengths, steps=options.more.steps, batch_size=params.train.batch_size)
    return Task(params, config, train, sample)


def _model(task: Task) -> StraightforwardClassifier:
    assert isinstance(task.params.model, ClassifierParams)
    return StraightforwardClassifier(task.params.model, task.config.size, task.config.pad_id, 2)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=2, help="batches per round (default: 2)")


if __name__ == "__main__":
    main("training_sentiment", __doc__, measure, arguments=arguments)
