"""Whether our fast training learns as well as the straightforward code: loss curves, `python -m benchmarks.curves`.

Both start from the same weights and take the same random batches in the same order for `--steps` updates; they differ
in precision, dropout masks, and everything that makes ours fast. With `--noise`, a second straightforward run with
different dropout masks shows the effect of those alone.
"""

import argparse
import sys
from itertools import pairwise
from statistics import fmean

import torch

from benchmarks.harness import Options, Report, Table, main
from benchmarks.peers.straightforward import load_into_ours, load_ours
from benchmarks.training import OurLoop, Steps
from benchmarks.translation import Task, open_task, our_training, ours, peer_loop, straightforward
from transformer.encoded.batching import Ids
from transformer.training.batches import random_batches

OURS = "ours"
STRAIGHTFORWARD = "straightforward"
_POINTS = 10
"""Number of points in a printed curve."""


def measure(options: Options) -> Report:
    """The training loss of each over time, and the validation loss at the end."""
    task = open_task(options)
    runs = (OURS, STRAIGHTFORWARD, f"{STRAIGHTFORWARD}, other dropout")[: 3 if options.more.noise else 2]
    curves, validation = {}, {}
    for number, name in enumerate(runs):
        print(f"  {name}", file=sys.stderr)
        done, validation[name] = _run(task, options, dropout_seed=number, own=name == OURS)
        curves[name] = _points(done.losses)
    differences = {name: fmean(_apart(curves[name], curves[STRAIGHTFORWARD])) for name in curves}
    return Report(
        [
            Table(
                "Training loss",
                "nats a target token",
                curves,
                STRAIGHTFORWARD,
                axis=_ends(options.more.steps)[1:],
                axis_label="updates",
            )
        ],
        {
            "updates": options.more.steps,
            "validation loss": {name: round(loss, 4) for name, loss in validation.items()},
            f"mean distance from `{STRAIGHTFORWARD}`": {name: round(value, 4) for name, value in differences.items()},
        },
    )


def _run(task: Task, options: Options, *, dropout_seed: int, own: bool) -> tuple[Steps, float]:
    """Train one from the seed's initial weights; returns its steps, and the validation loss of its last weights."""
    training = our_training(task, options.compute)
    batches = _batches(task, options.more.steps)
    if own:
        torch.manual_seed(dropout_seed)
        done = OurLoop(training, training.params, options.compute).steps(batches)
    else:
        model = straightforward(task.config)
        load_ours(model, training.model)
        torch.manual_seed(dropout_seed)
        done = peer_loop(model, task, options.compute.device).steps(batches)
        load_into_ours(model, ours(training))
    training.model.eval()
    with torch.inference_mode():
        return done, training.validate()["validation_loss"]


def _batches(task: Task, steps: int) -> list[Ids]:
    lengths, params, batches = task.train.lengths.max(axis=1), task.params.train, list[Ids]()
    epoch = 1
    while len(batches) < steps:
        batches += random_batches(lengths, params, epoch)
        epoch += 1
    return batches[:steps]


def _points(losses: list[float]) -> list[float]:
    """The means over equal parts of a curve."""
    ends = _ends(len(losses))
    return [fmean(losses[a:b]) for a, b in pairwise(ends)]


def _ends(steps: int) -> list[int]:
    return sorted({round(steps * part / _POINTS) for part in range(_POINTS + 1)})


def _apart(curve: list[float], other: list[float]) -> list[float]:
    return [abs(a - b) for a, b in zip(curve, other, strict=True)]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=50, help="updates (default: 50)")
    parser.add_argument("--noise", action="store_true", help="run the straightforward model twice")


if __name__ == "__main__":
    main("curves", __doc__, measure, arguments=arguments)
