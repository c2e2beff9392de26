"""figures: draws the attention in texts, and what the code computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, with_labels
from transformer.core.validation import Hardware, StageParams
from transformer.data.vocabulary import clip
from transformer.families.classifier.classifier import AnsweringParams, Prediction
from transformer.families.classifier.torch_classifier import (
    NgramClassifier,
    TorchClassifier,
    TrainedClassifier,
    open_trained,
)
from transformer.families.classifier.training_params import ClassifierTrainParams
from transformer.nn.attention_weights import Maps, collect_attention
from transformer.nn.device import prepare
from transformer.reporting.attention_maps import (
    Axis,
    Drawing,
    FiguresParams,
    Weights,
    attention_figure,
    chosen_layers,
    head_panels,
    sentences,
    updates,
    write_explorer,
)
from transformer.reporting.style import save
from transformer.reporting.theory import explain
from transformer.training.schedule import Schedule

_LONGEST = 40  # maximum tokens that remain readable on an axis
_POOLED = {
    "first": "What the first token, which is the pooled one, looks at",
    "cls": "What [CLS], which is the pooled token, looks at",
    "mean": "What the pooled mean over all tokens looks at",
}


@dataclass(frozen=True)
class AttendedText:
    """One text, its predicted class, and the attention weights between its tokens."""

    tokens: list[str]
    """The first S tokens of the network's input, including special ones."""
    shown: int
    """Number of them that belong to the text itself."""
    cut: bool
    """True if the text has more tokens."""
    answer: Prediction
    """Prediction for the whole text."""
    maps: Maps
    """Attention weights (1, H, L, L) by module name, of all L >= S tokens, from the forward pass of the prediction."""


def classify_with_attention(classifier: TorchClassifier, text: str, *, longest: int) -> AttendedText:
    """Classify one raw text and collect its attention weights, to show them for its first `longest` tokens."""
    whole = classifier.encode([text])[0]
    ids = clip(whole, classifier.model.config.model.max_length)
    device = next(classifier.model.parameters()).device
    with torch.inference_mode(), collect_attention(classifier.model) as maps:
        classifier.model(torch.from_numpy(ids)[None].to(device))
    (answer,) = classifier.classify([text])
    put_before = ["[CLS]"] if classifier.model.params.pooling == "cls" else []
    shown, ends = ids[:longest], len(ids) <= longest
    tokens = put_before + classifier.vocabulary.entries(shown)
    own = len(shown) - 1 - ends  # the end token is shown with all others
    return AttendedText(tokens, own, not ends or len(ids) < len(whole), answer, maps)


class Params(StageParams):
    """The stage's parameters."""

    figures: FiguresParams
    train: ClassifierTrainParams
    evaluate: AnsweringParams
    hardware: Hardware


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write SVG files, and all maps as JSON, to `paths.figures`. Returns the number of figures."""
    compute = prepare(params.hardware)
    task = with_labels(task, paths.corpus)
    opened = paths.trained, paths.vocab, paths.tokens, params.evaluate, compute.device
    classifier = open_trained(*opened, task.classes)
    if isinstance(classifier, NgramClassifier):
        paths.figures.mkdir(parents=True, exist_ok=True)
        observer.say("a model of n-grams has no attention to draw: reports list the n-grams that weigh most")
        return {"figures": 0}
    pooling = classifier.model.params.pooling
    total = updates(paths.history, params.train.epochs)
    written = explain(paths.figures, Schedule(params.train, total, classifier.model.d_model))
    explored = []
    for number, text in enumerate(sentences(task, params.figures, paths, "text"), start=1):
        review = classify_with_attention(classifier, text, longest=_LONGEST)
        for drawing in drawings(review, pooling, layers=params.figures.layers, unit=task.unit):
            save(paths.figures / f"{drawing.name}_{number}.svg", drawing.title, partial(attention_figure, drawing))
            written += 1
        explored.append((text, list(drawings(review, pooling, layers="all", unit=task.unit))))
    write_explorer(paths.figures, explored)
    return {"figures": written}


def drawings_of(classifier: TrainedClassifier, text: str, *, layers: str) -> list[Drawing]:
    """Return all attention maps of one raw text; none for an n-gram model."""
    if isinstance(classifier, NgramClassifier):
        return []
    review = classify_with_attention(classifier, text, longest=_LONGEST)
    return list(drawings(review, classifier.model.params.pooling, layers=layers, unit="text"))


def drawings(review: AttendedText, pooling: str, *, layers: str, unit: str) -> Iterator[Drawing]:
    """Yield drawings of each head of the chosen `layers`, and of the last layer's weights in the pooled state.

    Models without attention have neither. Max pooling lacks the second, as each dimension may come from another token.
    """
    tokens = Axis("token looked at", review.tokens)
    answer = f"{review.answer.label}, {review.answer.probability:.2f}"
    if review.cut:
        answer += f"; the first {review.shown} tokens are shown"
    encoder = {name: weights for name, weights in review.maps.items() if name.startswith("encoder.")}
    if encoder:
        size = len(review.tokens)
        heads = head_panels(chosen_layers(encoder, layers=layers))
        panels = {name: weights[:size, :size] for name, weights in heads.items()}
        title = f"Self-attention of the encoder in a {unit} ({answer})"
        yield Drawing("encoder_attention", title, panels, Axis("token that looks", review.tokens), tokens)
    if encoder and pooling in _POOLED:
        last = head_panels(chosen_layers(encoder, layers="last")).values()
        rows = [_pooled(weights, pooling)[: len(review.tokens)] for weights in last]
        of_heads = Axis("head", [str(head) for head in range(1, len(rows) + 1)])
        title = f"{_POOLED[pooling]} ({answer})"
        yield Drawing("pooled_attention", title, {"last layer": np.stack(rows)}, of_heads, tokens)


def _pooled(weights: Weights, pooling: str) -> Weights:
    """Return the weights (L,) of the values in the pooled state, given one head's weights (L, L)."""
    row: Weights = weights.mean(axis=0) if pooling == "mean" else weights[0]
    return row
