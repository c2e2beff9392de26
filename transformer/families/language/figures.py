"""figures: draws the attention in texts, and what the code computes."""

from collections.abc import Iterator
from functools import partial

import torch

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Hardware, StageParams
from transformer.data.vocabulary import clip
from transformer.families.language.interface import MASK
from transformer.families.language.long_figures import write_long_figures
from transformer.families.language.scoring import AnsweringParams
from transformer.families.language.torch_model import TorchLanguageModel
from transformer.families.language.training_params import LanguageTrainParams
from transformer.nn.attention_weights import collect_attention
from transformer.nn.device import prepare
from transformer.reporting.attention_maps import (
    Axis,
    Drawing,
    FiguresParams,
    attention_figure,
    chosen_layers,
    head_panels,
    sentences,
    updates,
    write_explorer,
)
from transformer.reporting.style import TITLE, plain, save
from transformer.reporting.theory import explain
from transformer.training.schedule import Schedule

_LONGEST = 40  # maximum tokens that remain readable on an axis


class Params(StageParams):
    """The stage's parameters."""

    figures: FiguresParams
    train: LanguageTrainParams
    evaluate: AnsweringParams
    hardware: Hardware


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write SVG files, and all maps as JSON, to `paths.figures`. Returns the number of figures."""
    compute = prepare(params.hardware)
    model = TorchLanguageModel(paths.trained, paths.vocab, paths.tokens, params.evaluate, compute.device)
    total = updates(paths.history, params.train.epochs)
    written = explain(paths.figures, Schedule(params.train, total, model.model.d_model))
    written += write_long_figures(paths, model)
    explored = []
    for number, text in enumerate(sentences(task, params.figures, paths, "text"), start=1):
        for drawing in drawings_of(model, text, layers=params.figures.layers):
            save(paths.figures / f"{drawing.name}_{number}.svg", drawing.title, partial(attention_figure, drawing))
            written += 1
        explored.append((text, drawings_of(model, text, layers="all")))
    write_explorer(paths.figures, explored)
    return {"figures": written}


def drawings_of(model: TorchLanguageModel, text: str, *, layers: str) -> list[Drawing]:
    """Return all attention maps of one raw text, for its first tokens and at most the model's context."""
    return list(_drawings(model, text, layers=layers))


def _drawings(model: TorchLanguageModel, text: str, *, layers: str) -> Iterator[Drawing]:
    whole = model.encode_gaps(text)
    ids = clip(whole, model.model.config.model.max_length)  # one segment, of a Transformer-XL
    device = next(model.model.parameters()).device
    with torch.inference_mode(), collect_attention(model.model) as maps:
        model.model(torch.from_numpy(ids)[None].to(device))
    shown, ends = ids[:_LONGEST], len(ids) <= _LONGEST
    tokens = [MASK if number == model.engine.mask_id else model.vocabulary.entries([number])[0] for number in shown]
    own = tokens[1:-1] if ends else tokens[1:]
    kind = "to itself and to tokens before it" if model.engine.causal else "to all tokens"
    title = f"Self-attention, from each token {kind}: {plain(' '.join(own), TITLE)}"
    if not ends or len(ids) < len(whole):
        title += f" (the first {len(own)} tokens)"
    axes = Axis("token that looks", tokens), Axis("token looked at", tokens)
    size = len(shown)
    panels = {name: weights[:size, :size] for name, weights in head_panels(chosen_layers(maps, layers=layers)).items()}
    yield Drawing("self_attention", title, panels, *axes)
