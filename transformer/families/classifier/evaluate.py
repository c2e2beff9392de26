"""evaluate: scores predictions on validation and test, with confidence intervals and the worst errors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, with_labels
from transformer.core.validation import Hardware, StageParams
from transformer.data.leakage import LeakageCheck, words
from transformer.data.store import Ids
from transformer.data.workers import OrderedMap, worker_processes
from transformer.evaluation.baseline import (
    Baseline,
    ScoringParams,
    evaluated_splits,
)
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.headline import OF_LABEL
from transformer.families.classifier.classifier import ClassificationParams, prediction, probabilities_of
from transformer.families.classifier.interface import LONGEST
from transformer.families.classifier.metrics import Bin, fitted_temperature, linear_baseline, reliability, split_figures
from transformer.families.classifier.scores import (
    OF_THE_SECOND,
    Labels,
    accuracy_by_length,
    by_class,
    confident_errors,
    confusion,
    precision_recall,
    roc,
)
from transformer.families.classifier.texts import EncodedTexts
from transformer.families.classifier.torch_classifier import NgramClassifier, TrainedClassifier, open_trained
from transformer.nn.device import prepare, with_own_cores

_opened: list[TrainedClassifier] = []
"""The model opened in this process."""


def open_classifier(paths: Paths, params: ClassificationParams, hardware: Hardware, classes: tuple[str, ...]) -> None:
    """Open the trained model in this process. Raises UserError if a file is missing or broken."""
    device = prepare(hardware).device
    _opened[:] = [open_trained(paths.trained, paths.vocab, paths.tokens, params, device, classes)]


def opened_classifier() -> TrainedClassifier:
    """Return the model opened by `open_classifier`."""
    return _opened[0]


def score_with(ordered_map: OrderedMap, batches: Iterable[Ids]) -> Iterator[NDArray[np.floating[Any]]]:
    """Yield the logits of each batch, in order, computed in processes that called `open_classifier`."""
    return ordered_map(_logits, batches)


def _logits(token_ids: Ids) -> NDArray[np.floating[Any]]:
    return opened_classifier().scorer.logits(token_ids)


COLUMNS = ("split", "text", "label", "prediction", "probability")
_ERRORS = ("split", "label", "prediction", "probability", "text")
_ROUNDED = 1e-6  # rounding tolerance of stored probabilities
_SHOWN = 20  # errors per split, and n-grams per class, in the tables
_MAIN = (
    *("accuracy", "accuracy_low", "accuracy_high", "f1", "macro_f1"),
    *("loss", "roc_auc", "linear_accuracy", "duplicates"),
)


class EvaluateParams(ClassificationParams, ScoringParams):
    """Parameters of `evaluate`: prediction and scoring."""

    linear_ngrams: int = Field(ge=1, le=LONGEST)
    """The linear baseline uses n-grams of 1 to this many words."""


class Params(StageParams):
    """The stage's parameters."""

    evaluate: EvaluateParams
    hardware: Hardware


@dataclass(frozen=True)
class _Answers:
    """The texts of one split, and the model's probabilities for them."""

    texts: list[str]
    labels: Labels
    probabilities: Floats
    """As in scores.py."""
    truncated: int
    """Number of texts that were truncated for the model."""
    unknown: float
    """Share of unknown tokens among those of the texts."""


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write metrics per split, all predictions, and tables. Returns the main validation metrics."""
    baseline = _open_baseline(params.evaluate.baseline, paths)
    task, splits = with_labels(task, paths.corpus), evaluated_splits(paths, "text")
    opened = paths, params.evaluate, params.hardware, task.classes
    runtime = with_own_cores(params.runtime, params.hardware.threads)
    with worker_processes(runtime, initializer=open_classifier, arguments=opened) as ordered_map:
        classifier = opened_classifier()
        if runtime.workers:
            classifier.score = partial(score_with, ordered_map)
        answers = {split: _answered(split, task, classifier, paths, observer) for split in splits}
    temperature = fitted_temperature(answers["validation"].labels, answers["validation"].probabilities)
    linear, commonest = _linear_answers(splits, classifier, paths, params.evaluate.linear_ngrams, observer)
    leakage = LeakageCheck(_texts(paths, "train"))
    figures: dict[str, Any] = {}
    for split, given in answers.items():
        others = {"linear": linear[split]}
        if baseline and (rows := baseline.of_split(split, {"text": given.texts}, observer)):
            others["baseline"] = np.array([_probabilities(row, task.classes, baseline.name) for row in rows])
        duplicates = leakage.check(split, given.texts, seen_from_now_on=split.startswith("validation"))
        figures[split] = split_figures(
            given.labels,
            given.probabilities,
            temperature=temperature,
            duplicates=duplicates,
            commonest=commonest,
            units=task.units,
            others=others,
            samples=params.evaluate.bootstrap_samples,
        )
        if given.truncated:
            figures[split]["truncated_rate"] = round(given.truncated / len(given.texts), 6)
        if given.unknown:
            figures[split]["unknown_rate"] = round(given.unknown, 6)
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in _main(figures[split]).items()))
    write_table(paths.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(paths.tables / "errors.tsv", _ERRORS, _errors(answers, task.classes))
    if isinstance(classifier, NgramClassifier):
        write_table(paths.tables / "ngrams.tsv", ("class", "ngram", "weight"), _heaviest(classifier))
    else:
        (paths.tables / "ngrams.tsv").unlink(missing_ok=True)  # left by an earlier manual run; DVC empties the folder
    _write_plots(paths.plots, answers["test"], task)
    if len(task.classes) == 2:
        figures["signatures"] = dict.fromkeys(OF_THE_SECOND, f"{OF_LABEL}{task.classes[1]}")
        observer.say(f"{', '.join(OF_THE_SECOND)}: of the label {task.classes[1]}")
    write_json(paths.evaluation, figures)
    write_table(paths.predictions, COLUMNS, _rows(answers, task.classes))
    return _main(figures["validation"])


def _open_baseline(name: str | None, paths: Paths) -> Baseline | None:
    if name is None:
        return None
    return Baseline.read(
        name, paths.baselines, paths.predictions, committed=paths.committed, columns=("prediction", "probability")
    )


def _probabilities(row: Mapping[str, str], classes: Sequence[str], name: str) -> float | list[float]:
    """Return the probabilities of a prediction row, as in scores.py; with many classes, the others share the rest."""
    least = 1 / len(classes)
    try:
        probability, answer = float(row["probability"]), classes.index(row["prediction"])
        if not least - _ROUNDED <= probability <= 1:
            raise ValueError("another class is more probable")
    except ValueError as error:
        raise UserError(
            f"{name}: `{row['prediction']}` at `{row['probability']}` is not a prediction: it must be one of"
            f" {', '.join(classes)}, and its own probability a number from {least:.3g} to 1"
        ) from error
    probability = max(probability, least + _ROUNDED)  # a tie would count as another class
    if len(classes) == 2:
        return probability if answer else 1 - probability
    rest = (1 - probability) / (len(classes) - 1)
    return [probability if number == answer else rest for number in range(len(classes))]


def _answered(split: str, task: Task, classifier: TrainedClassifier, paths: Paths, observer: Observer) -> _Answers:
    encoded = EncodedTexts(paths.encoded / split, classifier.model.config)
    encoded.report(task, observer)
    whole = list(encoded.whole())
    found = classifier.probabilities(whole, observer)
    ids = np.concatenate([np.zeros(0, dtype=np.int64), *(text[1:-1] for text in whole)])
    unknown = int((ids == classifier.vocabulary.unknown_id).sum()) / max(len(ids), 1)
    return _Answers(_texts(paths, split), np.asarray(encoded.labels), found, encoded.truncated, unknown)


def _linear_answers(
    splits: Sequence[str], classifier: TrainedClassifier, paths: Paths, longest: int, observer: Observer
) -> tuple[dict[str, Floats], int]:
    """Return the linear baseline's probabilities by split, and the most frequent class in train.

    The baseline trains on the same tokens as the model, but on untruncated texts. longest: maximum n of its n-grams.
    """
    observer.say("training the linear baseline")
    config = classifier.model.config
    train, *rest = (EncodedTexts(paths.encoded / split, config) for split in ("train", *splits))
    model = linear_baseline(config, train.whole(), np.asarray(train.labels), longest)
    commonest = int(np.bincount(train.labels).argmax())
    return {encoded.split: probabilities_of(model.logits(encoded.whole())) for encoded in rest}, commonest


def _texts(paths: Paths, split: str) -> list[str]:
    return [row["text"] for row in read_rows(paths.corpus / f"{split}.jsonl")]


def _main(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics to report while the stage runs."""
    return {name: figures[name] for name in _MAIN if name in figures}


def _rows(answers: Mapping[str, _Answers], classes: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for split, given in answers.items():
        for text, label, probability in zip(given.texts, given.labels, given.probabilities, strict=True):
            yield split, text, classes[label], *prediction(probability, classes)


def _errors(answers: Mapping[str, _Answers], classes: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield the most confident errors of each split."""
    for split, given in answers.items():
        for row in confident_errors(given.labels, given.probabilities, _SHOWN):
            answer = prediction(given.probabilities[row], classes)
            yield split, classes[given.labels[row]], *answer, given.texts[row]


def _heaviest(classifier: NgramClassifier) -> Iterator[tuple[object, ...]]:
    """Yield the n-grams with the largest weights for each class, and their contributions to its logit."""
    for number, name in enumerate(classifier.classes):
        for each in classifier.model.heaviest(number, _SHOWN):
            yield name, classifier.named(each), round(float(each.weights[number]), 4)


def _write_plots(plots: Path, test: _Answers, task: Task) -> None:
    labels, given = test.labels, test.probabilities
    lengths = [len(words(text)) for text in test.texts]
    write_table(plots / "confusion.tsv", ("actual", "predicted", task.units), confusion(labels, given, task.classes))
    measures = ("class", task.units, "recall", "precision", "f1")
    write_table(plots / "classes.tsv", measures, by_class(labels, given, task.classes))
    write_table(plots / "roc.tsv", ("false_positive_rate", "true_positive_rate"), roc(labels, given))
    write_table(plots / "precision_recall.tsv", ("recall", "precision"), precision_recall(labels, given))
    write_table(plots / "reliability.tsv", (*Bin._fields[:-1], task.units), reliability(labels, given))
    header = ("words", task.units, "accuracy")
    write_table(plots / "accuracy_by_length.tsv", header, accuracy_by_length(labels, given, lengths))
