"""figures: attention between source and translation, and the figures of the code."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.drawing.style import TITLE, plain, save
from transformer.families.seq2seq.attention import AttendedTranslation, translate_with_attention
from transformer.families.seq2seq.decoding.translator import EvaluateParams, Translator
from transformer.figures.attention import Axis, Drawing, attention_figure, chosen_layers, head_panels
from transformer.figures.config import FiguresParams
from transformer.figures.explain import explain
from transformer.figures.explorer import write_explorer
from transformer.figures.inputs import FigureInputs
from transformer.reporting.attention_maps import Maps
from transformer.training.config import TrainParams
from transformer.training.schedule import Schedule

_LONGEST = 40  # source tokens that can still be read on an axis


class Params(StageParams):
    """What the stage reads."""

    figures: FiguresParams
    train: TrainParams
    evaluate: EvaluateParams
    hardware: Hardware


def run(params: Params, *, inputs: FigureInputs, figures: Path, observer: Observer) -> dict[str, float]:
    """Write SVG files, and every map as JSON, into the folder `figures`. Returns the number of figures."""
    compute = prepare(params.hardware)
    translator = Translator(inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device)
    column = str(translator.pretokenizers["source"].language)
    total = params.train.epochs * inputs.updates_an_epoch()
    written = explain(figures, Schedule(params.train, total, translator.model.d_model))
    explored = []
    for number, sentence in enumerate(inputs.sentences(params.figures, column), start=1):
        attended = translate_with_attention(translator, sentence, longest=_LONGEST)
        observer.say(f"{plain(sentence, TITLE)} -> {plain(attended.text, TITLE)}")
        for drawing in drawings(attended, layers=params.figures.layers, self_attention=number == 1):
            save(figures / f"{drawing.name}_{number}.svg", drawing.title, partial(attention_figure, drawing))
            written += 1
        explored.append((sentence, list(drawings(attended, layers="all", self_attention=True))))
    write_explorer(figures, explored)
    return {"figures": written}


def drawings_of(translator: Translator, sentence: str, *, layers: str) -> list[Drawing]:
    """All maps of one raw sentence, the cross-attention first."""
    attended = translate_with_attention(translator, sentence, longest=_LONGEST)
    return list(drawings(attended, layers=layers, self_attention=True))


def drawings(attended: AttendedTranslation, *, layers: str, self_attention: bool) -> Iterator[Drawing]:
    """Cross-attention, every head of the chosen `layers`; with `self_attention` that of encoder and decoder too.

    A model without the attention in question has no such figure.
    """
    source, given = Axis("source token", attended.source), Axis("target token given", attended.given)
    predicted = Axis("target token predicted", attended.predicted)
    cross = chosen_layers(_cross_attention(attended), layers=layers)
    if cross:
        source_text = plain(" ".join(attended.source[1:-1]), TITLE)
        title = f"Cross-attention: {source_text}\n→ {plain(attended.text, TITLE)}"
        yield Drawing("cross_attention", title, head_panels(cross), predicted, source)
    for side, tokens in (("encoder", source), ("decoder", given)):
        own = chosen_layers(_self_attention(attended, side), layers=layers)
        if own and self_attention:
            yield Drawing(f"{side}_attention", f"Self-attention of the {side}", head_panels(own), tokens, tokens)


def _self_attention(attended: AttendedTranslation, side: str) -> Maps:
    own = re.compile(rf"{side}\.layers\.\d+\.attention")
    return {name: weights for name, weights in attended.maps.items() if own.fullmatch(name)}


def _cross_attention(attended: AttendedTranslation) -> Maps:
    """That of Transformers' decoders, and what recurrent decoders give."""
    own = {*_self_attention(attended, "encoder"), *_self_attention(attended, "decoder")}
    return {name: weights for name, weights in attended.maps.items() if name not in own}
