"""Training speed of the seed's translation model in real source and target tokens per second: `python -m
benchmarks.training_translation`.

A round is `--steps` batches of rows drawn from the train split, the same rows for every contender: ours takes them in
random batches, the peers, in fp32, in batches of similar length.
"""

import argparse

from torch import nn

from benchmarks.harness import Contender, Options, Report, Table, Target, main, measured, rates
from benchmarks.isolated import isolated
from benchmarks.peers.marian import MarianTranslator
from benchmarks.peers.torch_transformer import TorchTranslator
from benchmarks.training import OurLoop, Sample, contender
from benchmarks.translation import Task, open_task, our_training, peer_loop, sizes, straightforward
from transformer.checkpoint.device import Compute
from transformer.nn.layers import count_parameters

OURS = "ours"
STRAIGHTFORWARD = "straightforward, bucketed"
TORCH = "nn.Transformer, bucketed"
MARIAN = "MarianMT, bucketed"
PEERS = (STRAIGHTFORWARD, TORCH, MARIAN)


def measure(options: Options) -> Report:
    """Tokens per second of each contender."""
    task, device = open_task(options), options.compute.device
    trainings = {OURS: our_training(task, options.compute)}
    if options.compute.precision != "fp32":
        trainings["ours, fp32"] = our_training(task, Compute(device, "fp32"))
    contenders = {
        name: contender(
            OurLoop(training, task.params.train, training.compute), _sample(task, options).random, task.tokens
        )
        for name, training in trainings.items()
    } | {name: isolated(peer, name, options, threads=options.hardware.threads) for name in PEERS}
    speeds = rates(measured(contenders, options, warm=False))
    targets = [Target(OURS, STRAIGHTFORWARD, 3.0), Target(OURS, TORCH, 2.5), Target(OURS, MARIAN, 2.5)]
    table = Table("Training, translation", "source and target tokens/s", speeds, STRAIGHTFORWARD, targets)
    parameters = {OURS: count_parameters(trainings[OURS].model)} | {
        name: count_parameters(_model(name, task)) for name in PEERS
    }
    return Report([table], {"batches a round": options.more.steps, "parameters": parameters})


def peer(name: str, options: Options) -> Contender:
    """One of PEERS."""
    task = open_task(options)
    loop = peer_loop(_model(name, task), task, options.compute.device)
    return contender(loop, _sample(task, options).bucketed, task.tokens)


def _model(name: str, task: Task) -> nn.Module:
    if name == MARIAN:
        return MarianTranslator(task.config, task.vocabularies["target"])
    return TorchTranslator(*sizes(task.config)) if name == TORCH else straightforward(task.config)


def _sample(task: Task, options: Options) -> Sample:
    return Sample(task.train.lengths[:, 0], steps=options.more.steps, batch_size=task.params.train.batch_size)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=4, help="batches per round (default: 4)")


if __name__ == "__main__":
    main("training_translation", __doc__, measure, arguments=arguments)
