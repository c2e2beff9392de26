"""Figures that need no trained model: positions, the scale of attention scores, masks (Vaswani et al. 2017, section 3)
and the learning rate of every schedule (equation 3, and others).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import Tensor

from transformer.nn.attention import attention_weights
from transformer.nn.masks import causal_mask, padding_mask
from transformer.nn.positions import sinusoidal_table
from transformer.reporting.style import COLOURS, DASHES, save
from transformer.training.schedule import Schedule, TrainParams

_KEYS, _DRAWS = 16, 256
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_POINTS = 400
_SENTENCES = (("A", "dog", "runs", ".", "<eos>"), ("Two", "cats", "<eos>", "<pad>", "<pad>"))


def positions_figure(length: int = 64, d_model: int = 128) -> Figure:
    """Draw the sinusoidal table as a heat map (section 3.5)."""
    figure = Figure(figsize=(8.0, 4.0))
    axes = figure.subplots()
    table = sinusoidal_table(length, d_model).numpy()
    image = axes.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="none")
    axes.set_title(f"Sinusoidal positions, d_model = {d_model}: even dimensions sine, odd ones cosine")
    axes.set_xlabel("dimension (wavelengths from 2π on the left to nearly 10000·2π on the right)")
    axes.set_ylabel("position")
    figure.colorbar(image, ax=axes, label="value", ticks=[-1, 0, 1])
    return figure


def random_weights(d_k: int, *, scaled: bool, seed: int = 1) -> Tensor:
    """Compute the attention weights (256, 16) of 256 random queries over 16 random keys each, with or without
    1/sqrt(d_k).

    The components of queries and keys are independent with mean 0 and variance 1, as in footnote 4 of the paper, so
    that an unscaled score has variance d_k.
    """
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(_DRAWS, 1, 1, d_k, generator=generator, dtype=torch.float64)
    key = torch.randn(_DRAWS, 1, _KEYS, d_k, generator=generator, dtype=torch.float64)
    return attention_weights(query if scaled else query * d_k**0.5, key, None)[:, 0, 0]


def softmax_gradient_norm(weights: Tensor) -> float:
    """Compute the mean Frobenius norm of the softmax's Jacobian, diag(p) - p p^T; weights: (N, S)."""
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
    return float(torch.linalg.matrix_norm(jacobian).mean())


def scale_figure() -> Figure:
    """Show why scores are scaled by 1/sqrt(d_k) (section 3.2.1): else softmax saturates and its gradient vanishes."""
    figure = Figure(figsize=(10.0, 3.4))
    small, large, gradients = figure.subplots(1, 3)
    for axes, d_k in ((small, 4), (large, 512)):
        _concentration(axes, d_k)
    for index, scaled in enumerate((True, False)):
        norms = [softmax_gradient_norm(random_weights(d_k, scaled=scaled)) for d_k in _SIZES]
        gradients.plot(_SIZES, norms, color=COLOURS[index], linestyle=DASHES[index], label=_named(scaled))
    gradients.set_xscale("log", base=2)
    gradients.set_ylim(bottom=0)
    gradients.set_title("Gradient of the softmax")
    gradients.set_xlabel("d_k")
    gradients.set_ylabel("norm of its Jacobian, mean")
    gradients.legend()
    figure.suptitle(f"Attention of {_DRAWS} random queries to {_KEYS} random keys, with and without 1/sqrt(d_k)")
    return figure


def _concentration(axes: Axes, d_k: int) -> None:
    places = np.arange(1, _KEYS + 1)
    for index, scaled in enumerate((True, False)):
        ordered = random_weights(d_k, scaled=scaled).sort(dim=-1, descending=True).values.mean(dim=0)
        offset = 0.2 if index else -0.2
        style: dict[str, Any] = {"color": COLOURS[index], "hatch": "////" * index, "label": _named(scaled)}
        axes.bar(places + offset, ordered.numpy(), 0.4, **style)
    axes.set_ylim(0, 1)
    axes.set_xticks([1, 4, 8, 12, 16])
    axes.set_title(f"Weights at d_k = {d_k}")
    axes.set_xlabel("key, by falling weight")
    axes.set_ylabel("weight, mean")
    axes.legend()


def _named(scaled: bool) -> str:
    return "q·k / sqrt(d_k)" if scaled else "q·k"


def masks_figure() -> Figure:
    """Draw the masks: padding in the encoder and the source, future positions in the decoder (section 3.2.3)."""
    figure = Figure(figsize=(10.0, 4.0))
    padding, shorter, causal = figure.subplots(1, 3)
    ids = torch.tensor([[token != "<pad>" for token in sentence] for sentence in _SENTENCES]).long()
    masks = padding_mask(ids, 0).expand(-1, -1, ids.shape[1], -1)[:, 0]
    for axes, mask, sentence in zip((padding, shorter), masks, _SENTENCES, strict=True):
        _mask(axes, mask, sentence)
    padding.set_title("Padding mask, the batch's longest")
    shorter.set_title("Padding mask, a shorter sentence")
    target = ("<bos>", *_SENTENCES[0][:-1])
    _mask(causal, causal_mask(len(target), len(target)), target)
    causal.set_title("Causal mask of the decoder")
    patches = [Patch(facecolor=COLOURS[0], label="allowed"), Patch(facecolor="#E8E8E8", label="hidden")]
    figure.legend(handles=patches, loc="outside lower center", ncols=2)
    return figure


def _mask(axes: Axes, mask: Tensor, tokens: Sequence[str]) -> None:
    axes.imshow(mask.numpy(), cmap=ListedColormap(["#E8E8E8", COLOURS[0]]), vmin=0, vmax=1, interpolation="none")
    axes.set_xticks(range(len(tokens)), tokens, rotation=90)
    axes.set_yticks(range(len(tokens)), tokens)
    axes.set_xticks(np.arange(0.5, len(tokens) - 1), minor=True)
    axes.set_yticks(np.arange(0.5, len(tokens) - 1), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.set_xlabel("key")
    axes.set_ylabel("query")


def learning_rates(schedule: Schedule, steps: list[int]) -> dict[str, list[float]]:
    """Compute the learning rate at each of `steps` (from 1) per schedule, all other parameters being equal.

    A schedule that is incompatible with the other parameters is left out.
    """
    rates = {}
    for name in get_args(TrainParams.model_fields["schedule"].annotation):
        try:
            other = type(schedule.params).model_validate(schedule.params.model_dump() | {"schedule": name})
        except ValueError:
            continue
        rates[name] = [replace(schedule, params=other)(step) for step in steps]
    return rates


def schedules_figure(schedule: Schedule) -> Figure:
    """Plot every schedule with this run's parameters, relative to its peak rate; the run's own is thick."""
    params, total = schedule.params, schedule.total
    points = {max(1, round(total * point / _POINTS)) for point in range(_POINTS + 1)}
    steps = sorted(points | {min(max(params.warmup, 1), total)})  # where most have their highest rate
    figure = Figure(figsize=(8.0, 3.6))
    axes = figure.subplots()
    for index, (name, rates) in enumerate(learning_rates(schedule, steps).items()):
        own, highest = name == params.schedule, max(rates) or 1.0  # of a single update, linear and cosine are 0
        axes.plot(
            steps,
            [rate / highest for rate in rates],
            color=COLOURS[index % len(COLOURS)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=3.0 if own else 1.2,
            zorder=3 if own else 2,
            label=f"{name} (this training)\nhighest {highest:.3g}" if own else name,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, total)
    axes.set_title(f"Learning-rate schedules, {params.warmup} steps of warmup")
    axes.set_xlabel("update")
    axes.set_ylabel("learning rate / its highest")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def explain(folder: Path, schedule: Schedule) -> int:
    """Write these figures to `folder` and return their number; schedule: the run's."""
    figures = {
        "positions": ("Heat map of the sinusoidal position table", positions_figure),
        "scale": ("Softmax of scores with and without division by the root of d_k", scale_figure),
        "masks": ("Padding and causal masks", masks_figure),
        "schedules": ("Learning rate by update for every schedule", lambda: schedules_figure(schedule)),
    }
    for name, (title, draw) in figures.items():
        save(folder / f"{name}.svg", title, draw)
    return len(figures)
