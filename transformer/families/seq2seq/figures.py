"""figures: draws the attention between source and translation, and what the code computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Hardware, StageParams
from transformer.data.vocabulary import clip
from transformer.families.seq2seq.attended import attention, cross_maps, self_maps
from transformer.families.seq2seq.torch_translator import TorchTranslator
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.families.seq2seq.translator import AnsweringParams
from transformer.nn.attention_weights import Maps
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

_LONGEST = 40  # maximum source tokens that remain readable on an axis


@dataclass(frozen=True)
class AttendedTranslation:
    """One sentence, its translation, and the attention weights between their tokens."""

    source: list[str]
    """S source tokens, including special ones."""
    given: list[str]
    """T decoder input tokens, the begin token first."""
    predicted: list[str]
    """T predicted target tokens, ending with the end token if the translation finished."""
    text: str
    """The detokenized translation."""
    maps: Maps
    """Attention weights (1, H, T, S), (1, H, S, S) or (1, H, T, T) by module name."""
    cut: bool
    """True if the source was truncated."""


def translate_with_attention(translator: TorchTranslator, sentence: str, *, longest: int) -> AttendedTranslation:
    """Translate one raw sentence, truncated to `longest` tokens, and collect the attention of one pass over both sides.

    Raises UserError if the sentence has no token.
    """
    (tokens,) = translator.pretokenize([sentence])
    if not tokens:
        raise UserError(f"the sentence {sentence!r} has no token: write another")
    source, target = translator.vocabularies["source"], translator.vocabularies["target"]
    (whole,) = source.encode([tokens])
    ids = clip(whole, min(longest, translator.model.config.model.max_length))
    found = translator.best(ids)
    answer, stop = found.ids, len(found.ids) + found.finished
    given = [target.begin_id, *answer][:stop]  # an unfinished translation has no end token to predict
    return AttendedTranslation(
        source=source.entries(ids),
        given=target.entries(given),
        predicted=target.entries([*answer, target.end_id][:stop]),
        text=translator.text(target.decode(answer)),
        maps=attention(translator, ids, given),
        cut=len(ids) < len(whole),
    )


class Params(StageParams):
    """The stage's parameters."""

    figures: FiguresParams
    train: Seq2SeqTrainParams
    evaluate: AnsweringParams
    hardware: Hardware


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write SVG files, and all maps as JSON, to `paths.figures`. Returns the number of figures."""
    compute = prepare(params.hardware)
    translator = TorchTranslator(paths.trained, paths.vocab, paths.tokens, params.evaluate, compute.device)
    column = str(translator.pretokenizers["source"].language)
    total = updates(paths.history, params.train.epochs)
    written = explain(paths.figures, Schedule(params.train, total, translator.model.d_model))
    explored = []
    for number, sentence in enumerate(sentences(task, params.figures, paths, column), start=1):
        attended = translate_with_attention(translator, sentence, longest=_LONGEST)
        observer.say(f"{plain(sentence, TITLE)} -> {plain(attended.text, TITLE)}")
        for drawing in drawings(attended, layers=params.figures.layers, self_attention=number == 1):
            save(paths.figures / f"{drawing.name}_{number}.svg", drawing.title, partial(attention_figure, drawing))
            written += 1
        explored.append((sentence, list(drawings(attended, layers="all", self_attention=True))))
    write_explorer(paths.figures, explored)
    return {"figures": written}


def drawings_of(translator: TorchTranslator, sentence: str, *, layers: str) -> list[Drawing]:
    """Return all attention maps of one raw sentence, cross-attention first."""
    attended = translate_with_attention(translator, sentence, longest=_LONGEST)
    return list(drawings(attended, layers=layers, self_attention=True))


def drawings(attended: AttendedTranslation, *, layers: str, self_attention: bool) -> Iterator[Drawing]:
    """Yield drawings of the cross-attention, each head of the chosen `layers`.

    `self_attention` adds the encoder's and the decoder's. Kinds of attention that the model lacks are omitted.
    """
    source, given = Axis("source token", attended.source), Axis("target token given", attended.given)
    predicted = Axis("target token predicted", attended.predicted)
    first = f" (the first {len(attended.source) - 2} tokens)" if attended.cut else ""
    cross = chosen_layers(cross_maps(attended.maps), layers=layers)
    if cross:
        source_text = plain(" ".join(attended.source[1:-1]), TITLE)
        title = f"Cross-attention: {source_text}{first}\n→ {plain(attended.text, TITLE)}"
        yield Drawing("cross_attention", title, head_panels(cross), predicted, source)
    for side, tokens in (("encoder", source), ("decoder", given)):
        own = chosen_layers(self_maps(attended.maps, side), layers=layers)
        if own and self_attention:
            yield Drawing(f"{side}_attention", f"Self-attention of the {side}{first}", head_panels(own), tokens, tokens)
