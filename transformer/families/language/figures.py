"""figures: draws the attention in texts, and what the code computes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task
from transformer.encoded.vocabulary import clip
from transformer.families.language.decoding.config import AnsweringParams
from transformer.families.language.decoding.with_torch import TorchLanguageModel
from transformer.families.language.nn.hiding import LanguageTrainParams
from transformer.families.language.nn.mask_token import MASK
from transformer.figures.attention import Axis, Drawing, attention_figure, chosen_layers, head_panels
from transformer.figures.attention_maps import collect_attention
from transformer.figures.explorer import write_explorer
from transformer.figures.inputs import FigureInputs, FiguresParams
from transformer.figures.style import TITLE, plain, save
from transformer.figures.theory import explain
from transformer.training.schedule import Schedule

_LONGEST = 40  # maximum tokens that remain readable on an axis


class Params(StageParams):
    """The stage's parameters."""

    figures: FiguresParams
    train: LanguageTrainParams
    evaluate: AnsweringParams
    hardware: Hardware


def run(task: Task, params: Params, *, inputs: FigureInputs, figures: Path, observer: Observer) -> dict[str, float]:
    """Write SVG files, and all maps as JSON, to the folder `figures`. Returns the number of figures."""
    compute = prepare(params.hardware)
    model = TorchLanguageModel(inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device)
    total = inputs.updates(params.train.epochs)
    written = explain(figures, Schedule(params.train, total, model.model.d_model))
    explored = []
    for number, text in enumerate(inputs.sentences(task, params.figures, "text"), start=1):
        for drawing in drawings_of(model, text, layers=params.figures.layers):
            save(figures / f"{drawing.name}_{number}.svg", drawing.title, partial(attention_figure, drawing))
            written += 1
        explored.append((text, drawings_of(model, text, layers="all")))
    write_explorer(figures, explored)
    return {"figures": written}


def drawings_of(model: TorchLanguageModel, text: str, *, layers: str) -> list[Drawing]:
    """Return all attention maps of one raw text, for its first tokens and at most the model's context."""
    return list(_drawings(model, text, layers=layers))


def _drawings(model: TorchLanguageModel, text: str, *, layers: str) -> Iterator[Drawing]:
    whole = model.encode_gaps(text)
    ids = clip(whole, model.engine.positions)
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
