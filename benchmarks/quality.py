"""Time to the notebooks' quality, validation perplexity 5.02 per word: `python -m benchmarks.quality`, under an hour.

Ours trains as `benchmarks/quality.yaml` says until its validation perplexity is low enough. The straightforward model
trains as in the notebooks: ten epochs of batches of similar length, Adam, fp32, keeping the best epoch. The time is
that of training and validation; both use our fast validation. `test` is translated greedily by our decoder.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.harness import Clock, Limit, Options, Report, Table, Target, main
from benchmarks.isolated import alone
from benchmarks.peers.straightforward import load_into_ours
from benchmarks.training import Sample
from benchmarks.translation import Task, open_task, our_training, ours, peer_loop, straightforward
from benchmarks.workspace import ROOT
from transformer.checkpoint.device import Compute
from transformer.core.errors import UserError
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.params import read_params
from transformer.core.validation import validate
from transformer.encoded.batching import Ids
from transformer.families.seq2seq.data.encoded import EncodedPairs
from transformer.families.seq2seq.decoding.decode import decode
from transformer.families.seq2seq.decoding.torch_generator import TorchGenerator
from transformer.families.seq2seq.evaluation.evaluate import Params as EvaluateParams
from transformer.families.seq2seq.evaluation.scores import token_metrics
from transformer.families.seq2seq.nn.interface import Seq2SeqModel
from transformer.families.seq2seq.train import Params
from transformer.nn.layers import count_parameters
from transformer.training.loop import fit
from transformer.training.trainable import BatchLoss

OURS = "ours"
STRAIGHTFORWARD = "straightforward"
RECIPE = ROOT / "benchmarks" / "quality.yaml"


Weights = dict[str, NDArray[np.float32]]


class Trained(NamedTuple):
    """The result of a training run."""

    seconds: float
    """Until the quality was reached, or of the whole run."""
    perplexity: float
    """On validation, with the kept weights."""
    history: list[tuple[float, float]]
    """Seconds and perplexity after each epoch."""
    state: Weights
    """The kept weights; as arrays, which can be passed between processes."""


def measure(options: Options) -> Report:
    """Seconds, perplexity and BLEU of both."""
    task = open_task(options)
    done = {
        OURS: _ours(_with_recipe(task, options.more.recipe), options.compute, options.more.perplexity),
        STRAIGHTFORWARD: alone(straightforward_run, options, threads=options.hardware.threads),
    }
    bleu = {name: [_bleu(task, trained.state, options)] for name, trained in done.items()}
    perplexity = {name: [trained.perplexity] for name, trained in done.items()}
    times = {name: [trained.seconds] for name, trained in done.items()}
    fifth = Target(OURS, STRAIGHTFORWARD, 0.2, at_least=False)
    return Report(
        [
            Table("Time to quality", "seconds", times, STRAIGHTFORWARD, [fifth]),
            Table(
                "Validation perplexity",
                "a target token",
                perplexity,
                STRAIGHTFORWARD,
                limits=[Limit(OURS, options.more.perplexity)],
            ),
            Table("BLEU, test, greedy", "BLEU", bleu, STRAIGHTFORWARD, [Target(OURS, STRAIGHTFORWARD, 1.0)]),
        ],
        {
            "seconds and perplexity by epoch": {
                name: [[round(seconds, 1), round(value, 3)] for seconds, value in trained.history]
                for name, trained in done.items()
            },
            "straightforward epochs": options.more.peer_epochs,
            "recipe": read_params(options.more.recipe),
        },
    )


def _with_recipe(task: Task, recipe: Path) -> Task:
    """The task with the recipe's parameters. Raises UserError if they change the model's size."""
    changes, plain = read_params(recipe), task.params.model_dump()
    if unknown := sorted(changes.keys() - {"model", "train"}):
        raise UserError(f"{recipe}: `{unknown[0]}` is not a valid section: use `model` and `train`")
    sections: dict[str, Any] = plain | {name: plain[name] | values for name, values in changes.items()}
    params = validate(Params, sections, where=recipe, prefix="translation")
    changed = task._replace(params=params, config=task.config.model_copy(update={"model": params.model}))
    sizes = [
        count_parameters(our_training(each, Compute(torch.device("cpu"), "fp32")).model) for each in (task, changed)
    ]
    if sizes[0] != sizes[1]:
        raise UserError(
            f"{recipe}: the model has {sizes[1]:,} parameters, but the seed's {sizes[0]:,}: do not change its size"
        )
    return changed


class _ReachedError(Exception):
    """The perplexity is low enough."""


class _Watched:
    """Our training, recording time and perplexity, until the target perplexity is reached."""

    def __init__(self, task: Task, compute: Compute, target: float) -> None:
        self.training = our_training(task, compute)
        self.model, self.lr_scales, self._target = self.training.model, self.training.lr_scales, target
        self.clock, self.history, self.state = Clock(compute.device), list[tuple[float, float]](), Weights()

    def batches(self, epoch: int) -> Sequence[Ids]:
        """The training's own."""
        return self.training.batches(epoch)

    def cost(self, epoch: int) -> int:
        """The training's own."""
        return self.training.cost(epoch)

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """The training's own."""
        return self.training.pieces(rows)

    def loss(self, rows: Ids) -> BatchLoss:
        """The training's own."""
        return self.training.loss(rows)

    def validate(self) -> dict[str, float]:
        """The training's own, recorded; with the epoch's weights as averaged by `averaging`."""
        metrics = self.training.validate()
        perplexity = metrics["validation_perplexity"]
        if not self.history or perplexity < min(value for _, value in self.history):
            self.state = _copy(self.model)
        self.history.append((self.clock.elapsed(), perplexity))
        _say(OURS, self.history)
        if perplexity <= self._target:
            raise _ReachedError
        return metrics


def _ours(task: Task, compute: Compute, target: float) -> Trained:
    watched = _Watched(task, compute, target)
    with suppress(_ReachedError):
        fit(watched, task.params.train, compute, log_every=10**9, observer=Observer())
    best = min(value for _, value in watched.history)
    return Trained(watched.history[-1][0], best, watched.history, watched.state)


def straightforward_run(options: Options) -> Trained:
    """Train as in the notebooks; runs in a separate process."""
    task, compute, epochs = open_task(options), options.compute, options.more.peer_epochs
    model, training = straightforward(task.config), our_training(task, compute)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
    loop, size = peer_loop(model, task, compute.device), task.params.train.batch_size
    sample = Sample(task.train.lengths[:, 0], steps=-(-len(task.train) // size), batch_size=size)
    clock, history, state = Clock(compute.device), list[tuple[float, float]](), Weights()
    for epoch in range(1, epochs + 1):
        loop.steps(sample.bucketed(epoch), untimed=0)
        load_into_ours(model, ours(training))
        training.model.eval()
        with torch.inference_mode():
            perplexity = training.validate()["validation_perplexity"]
        if not history or perplexity < min(value for _, value in history):
            state = _copy(training.model)
        history.append((clock.elapsed(), perplexity))
        _say(STRAIGHTFORWARD, history)
    return Trained(*min(history, key=lambda each: each[1]), history, state)


def _bleu(task: Task, state: Weights, options: Options) -> float:
    """BLEU of lowercased tokens on the split `test`."""
    model: Seq2SeqModel = our_training(task, options.compute).model
    model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    data, target = task.workspace.data("translation"), task.vocabularies["target"]
    pairs = EncodedPairs(data / "encoded" / "test", task.config)
    params = task.workspace.params("translation", EvaluateParams).evaluate
    sources = [pairs.source[row] for row in range(len(pairs))]
    found = decode(TorchGenerator(model, target), sources, target, params, Observer())
    references = [row["target"] for row in read_rows(data / "tokens" / "test.jsonl")]
    hypotheses = [target.decode(best[0].ids) for best in found]
    return token_metrics(hypotheses, references)["bleu"].score()


def _copy(model: torch.nn.Module) -> Weights:
    return {name: tensor.detach().cpu().clone().numpy() for name, tensor in model.state_dict().items()}


def _say(name: str, history: list[tuple[float, float]]) -> None:
    seconds, perplexity = history[-1]
    print(f"  {name}  epoch {len(history)}  {seconds:.0f} s  perplexity {perplexity:.3f}", file=sys.stderr)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--perplexity", type=float, default=5.02, help="target validation perplexity (default: 5.02)")
    parser.add_argument("--peer-epochs", type=int, default=10, help="epochs of the straightforward run (default: 10)")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="parameters of our run (default: quality.yaml)")


if __name__ == "__main__":
    main("quality", __doc__, measure, arguments=arguments, rounds=1)
