"""Figures of the models for long texts: how far a memory reaches, and how a text is hashed."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from transformer.core.files import read_rows
from transformer.core.paths import Paths
from transformer.data.store import Ids
from transformer.families.language.reformer import AttentionBlock, Reformer
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.families.language.transformer_xl import TransformerXL
from transformer.nn.attention_weights import collect_attention
from transformer.reporting.style import COLOURS, DASHES, save


def write_long_figures(paths: Paths, model: TorchLanguageModel) -> int:
    """Write what the kind of the model has to show on the beginning of validation. Returns the number of figures."""
    network = model.model
    if isinstance(network, TransformerXL) and network.memory_length:
        needed = network.memory_length + 2 * network.segment_length
        ids = _beginning(paths, model, needed)
        save(paths.figures / "memory_reach.svg", "How far the memory reaches", lambda: reach_figure(network, ids))
        return 1
    if isinstance(network, Reformer) and network.encoder.hashing.rounds:
        ids = _beginning(paths, model, network.config.model.max_length)
        save(paths.figures / "buckets.svg", "How a text is hashed", lambda: bucket_figure(network, ids))
        return 1
    return 0


def _beginning(paths: Paths, model: TorchLanguageModel, length: int) -> Ids:
    """Return up to `length` ids of the first validation texts, one after the other."""
    found: list[Ids] = []
    for row in read_rows(Path(paths.corpus) / "validation.jsonl"):
        if sum(map(len, found)) >= length:
            break
        found += model.encode([row["text"]])
    return np.concatenate(found)[:length]


def reach_figure(model: TransformerXL, ids: Ids) -> Figure:
    """Draw the share of attention that goes beyond each distance, by layer: means over heads and the last segment.

    ids: (N,) tokens of a text.
    """
    memory, device = None, next(model.parameters()).device
    *before, last = torch.split(torch.from_numpy(ids)[None].to(device), model.segment_length, dim=1)
    with torch.inference_mode():
        for segment in before:
            _, memory = model.segment(segment, memory)
        with collect_attention(model) as maps:
            model.segment(last, memory)
    figure = Figure(figsize=(7.0, 3.6))
    axes = figure.subplots()
    for number, weights in enumerate(maps.values()):
        _, _, queries, keys = weights.shape
        distance = (torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)).clamp(min=0).flatten()
        mean = weights[0].float().mean(dim=0).flatten().cpu() / queries
        shares = torch.zeros(keys).index_add_(0, distance, mean)
        beyond = 1 - shares.cumsum(0)
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
        axes.plot(range(1, keys + 1), beyond, label=f"layer {number + 1}", **style)
    axes.axvline(model.segment_length, color="0.6", linewidth=0.8)
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"tokens back; the line: the length of a segment, {model.segment_length}")
    axes.set_ylabel("share of attention beyond")
    axes.set_title(f"How far attention reaches with a memory of {model.memory_length} states")
    axes.legend()
    return figure


def bucket_figure(model: Reformer, ids: Ids) -> Figure:
    """Draw the bucket of each token, (N,), in the first round of hashing by the last layer, a panel per head."""
    found: dict[str, torch.Tensor] = {}
    encoder, block = model.encoder, model.encoder.layers[-1].attention
    assert isinstance(block, AttentionBlock)

    def keep(module: torch.nn.Module, given: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        generator = torch.Generator().manual_seed(encoder.seed)
        found["buckets"] = block.hashes(given[0], encoder.hashing, generator, None)

    handle = block.register_forward_hook(keep)
    try:
        with torch.inference_mode():
            model(torch.from_numpy(ids)[None].to(next(model.parameters()).device))
    finally:
        handle.remove()
    buckets = found["buckets"][0, :, 0].cpu().numpy()
    figure = Figure(figsize=(8.0, 1.2 + 1.1 * len(buckets)))
    for head, (axes, own) in enumerate(zip(figure.subplots(len(buckets), 1, squeeze=False).flat, buckets, strict=True)):
        axes.plot(own, ".", color=COLOURS[0], markersize=3)
        axes.set_ylim(-0.5, encoder.hashing.buckets - 0.5)
        axes.set_ylabel(f"head {head + 1}")
    axes.set_xlabel("token")
    figure.suptitle("Bucket of each token: first round of hashing, last layer")
    return figure
