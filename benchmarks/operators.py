"""The time of our training steps by kind of operator: `python -m benchmarks.operators`.

PyTorch's profiler over `--steps` updates of the seed's translation model; its own overhead is in `other`.
"""

import argparse
from collections import defaultdict
from typing import Any

import torch
from torch.profiler import profile

from benchmarks.harness import Options, Report, Table, main
from benchmarks.training import OurLoop, Sample
from benchmarks.translation import open_task, our_training

KINDS = {
    "matrix products": ("mm", "addmm", "bmm", "baddbmm", "linear"),
    "softmax and cross-entropy": (
        "_softmax",
        "_softmax_backward_data",
        "_log_softmax",
        "_log_softmax_backward_data",
        "nll_loss_forward",
        "nll_loss_backward",
    ),
    "dropout masks": ("random_", "bitwise_and", "bitwise_and_", "rsub", "bitwise_right_shift_", "__rshift__"),
    "copies and casts": ("copy_", "_to_copy", "clone", "contiguous", "cat"),
    "look-up and scatter": (
        *("index_select", "index_copy_", "embedding", "embedding_dense_backward", "index"),
        *("gather", "scatter_add_"),
    ),
    "normalisation": ("native_layer_norm", "native_layer_norm_backward"),
    "optimizer and clipping": ("_fused_adam_", "_fused_adamw_", "linalg_vector_norm", "_foreach_norm", "_foreach_mul_"),
    "sums": ("sum", "mean", "amax"),
    "element by element": (
        *("add", "add_", "mul", "mul_", "div", "div_", "sub", "sub_", "neg", "exp", "exp_", "where"),
        *("threshold_backward", "clamp_min", "relu", "masked_fill", "masked_fill_", "fill_", "zero_", "eq", "ne"),
    ),
}
OTHER = "other"


def measure(options: Options) -> Report:
    """The share of each kind in percent, one value per round."""
    task = open_task(options)
    loop = OurLoop(our_training(task, options.compute), task.params.train, options.compute)
    sample = Sample(task.train.lengths[:, 0], steps=options.more.steps, batch_size=task.params.train.batch_size)
    loop.steps(sample.random(0))
    rounds = [_shares(loop, sample, number) for number in range(1, options.rounds + 1)]
    total = {kind: sum(shares[kind] for shares in rounds) for kind in (*KINDS, OTHER)}
    order = sorted(total, key=lambda kind: -total[kind])
    values = {kind: [shares[kind] for shares in rounds] for kind in order}
    return Report([Table("Operators of a training step", "% of their time", values, order[0])])


def _shares(loop: OurLoop, sample: Sample, number: int) -> dict[str, float]:
    with profile() as profiler:
        loop.steps(sample.random(number))
    kinds = {f"aten::{name}": kind for kind, names in KINDS.items() for name in names}
    times: dict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        times[kinds.get(event.key, OTHER)] += _own_time(event, loop.compute.device)
    whole = sum(times.values())
    return {kind: 100 * times[kind] / whole for kind in (*KINDS, OTHER)}


def _own_time(event: Any, device: torch.device) -> float:
    return float(event.self_device_time_total if device.type == "cuda" else event.self_cpu_time_total)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this part's own arguments."""
    parser.add_argument("--steps", type=int, default=8, help="updates per round (default: 8)")


if __name__ == "__main__":
    main("operators", __doc__, measure, arguments=arguments, rounds=3)
