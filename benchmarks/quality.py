"""Time to the notebooks' quality, validation perplexity 5.02 per word: `python -m benchmarks.quality`, under an hour.

Ours trains as `RECIPE` says until its validation perplexity is low enough, the straightforward model as in the
notebooks: ten epochs of batches of similar length, Adam, fp32; its best epoch counts. Both use our fast validation.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress

import torch

from benchmarks.harness import Options, Report, Table, isolated, main, now
from benchmarks.loops import Sample
from benchmarks.peers.straightforward import StraightforwardTranslator, load_into_ours
from benchmarks.translation import Task, open_task, our_training, peer_loop
from transformer.core.observer import Observer
from transformer.core.validation import validate
from transformer.families.seq2seq.train import Params, Seq2SeqTraining
from transformer.nn.device import Compute
from transformer.training.loop import fit

OURS, STRAIGHTFORWARD = "ours", "straightforward"
RECIPE = {
    "model": {"dropout": 0.05, "attention_dropout": 0.0, "activation_dropout": 0.0, "residual_init": "scaled"},
    "train": {"epochs": 4, "batch_size": 64, "learning_rate": 1.2e-3, "betas": [0.9, 0.98], "schedule": "cosine"}
    | {"warmup": 300, "averaging": "ema", "ema_decay": 0.995},
}
"""How ours trains: what differs from the profile `seed` (not the model's size), chosen on validation."""
History = list[tuple[float, float]]
"""Seconds and validation perplexity after each epoch."""


def measure(options: Options) -> Report:
    """Seconds and perplexity of both, up to their best epochs."""
    task = open_task(options)
    peer = isolated(straightforward_run, options, threads=options.hardware.threads)
    done = {OURS: _our_run(_with_recipe(task), options.compute, options.more.perplexity), STRAIGHTFORWARD: peer(1)}
    best = {name: min(history, key=lambda epoch: epoch[1]) for name, history in done.items()}
    kinds = ("Time to quality", "seconds"), ("Validation perplexity", "a target token")
    tables = [
        Table(*kind, {name: [each[place]] for name, each in best.items()}, STRAIGHTFORWARD)
        for place, kind in enumerate(kinds)
    ]
    notes = {name: [[round(x, 1), round(y, 3)] for x, y in history] for name, history in done.items()}
    return Report(tables, {"seconds and perplexity by epoch": notes, "recipe": RECIPE})


def _with_recipe(task: Task) -> Task:
    plain = task.params.model_dump()
    sections = plain | {name: plain[name] | values for name, values in RECIPE.items()}
    params = validate(Params, sections, where="RECIPE", prefix="translation")
    return task._replace(params=params, config=task.config.model_copy(update={"model": params.model}))


class _ReachedError(Exception):
    """The perplexity is low enough."""


def _our_run(task: Task, compute: Compute, target: float) -> History:
    history, started = History(), now(compute.device)

    class Watched(Seq2SeqTraining):
        """Until the target perplexity is reached, by the epoch's weights as averaged."""

        def validate(self) -> dict[str, float]:
            metrics = super().validate()
            _add(history, started, compute.device, metrics, OURS)
            if metrics["validation_perplexity"] <= target:
                raise _ReachedError
            return metrics

    with suppress(_ReachedError):
        training = Watched(task.train, task.validation, task.params.train, compute, None)
        fit(training, task.params.train, compute, log_every=10**9, observer=Observer())
    return history


def straightforward_run(options: Options) -> Callable[[int], History]:
    """Trains as in the notebooks; runs in a separate process."""
    task, device = open_task(options), options.compute.device
    model, training = StraightforwardTranslator(task.config), our_training(task, options.compute)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)

    def run(number: int) -> History:
        loop, size = peer_loop(model, task, device), task.params.train.batch_size
        sample = Sample(task.train.lengths[:, 0], steps=-(-len(task.train) // size), batch_size=size)
        history, started = History(), now(device)
        for epoch in range(1, options.more.peer_epochs + 1):
            loop.steps(sample.bucketed(epoch), untimed=0)
            load_into_ours(model, training.model)
            training.model.eval()
            with torch.inference_mode():
                _add(history, started, device, training.validate(), STRAIGHTFORWARD)
        return history

    return run


def _add(history: History, started: float, device: torch.device, metrics: dict[str, float], name: str) -> None:
    history.append((now(device) - started, metrics["validation_perplexity"]))
    print(f"  {name}  epoch {len(history)}  perplexity {history[-1][1]:.3f}", file=sys.stderr)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--perplexity", type=float, default=5.02, help="target validation perplexity (default: 5.02)")
    parser.add_argument("--peer-epochs", type=int, default=10, help="epochs of the straightforward run (default: 10)")


if __name__ == "__main__":
    main("quality", __doc__, measure, arguments, rounds=1)
