"""evaluate: scores predictions on validation and test, with confidence intervals and the worst errors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import Field

from transformer.checkpoint.machine import with_own_cores
from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.core.task import Task, with_labels
from transformer.corpora.leakage import LeakageCheck, words
from transformer.evaluation.baseline import Baseline
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs, ScoringParams, evaluated_splits
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.decoding.labels import ClassificationParams, prediction, probabilities_of
from transformer.families.classifier.decoding.opening import TrainedClassifier
from transformer.families.classifier.decoding.with_ngrams import NgramClassifier
from transformer.families.classifier.evaluation.calibration import Bin, fitted_temperature, reliability
from transformer.families.classifier.evaluation.linear import linear_baseline
from transformer.families.classifier.evaluation.metrics import split_figures
from transformer.families.classifier.evaluation.scores import (
    Labels,
    accuracy_by_length,
    by_class,
    confident_errors,
    confusion,
    precision_recall,
    roc,
)
from transformer.families.classifier.evaluation.scoring import open_classifier, opened_classifier, score_with
from transformer.families.classifier.nn.config import LONGEST
from transformer.text.parallel import worker_processes

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


def run(
    task: Task, params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write metrics per split, all predictions, and tables. Returns the main validation metrics."""
    baseline = _open_baseline(params.evaluate.baseline, inputs, outputs)
    task, splits = with_labels(task, inputs.corpus), evaluated_splits(inputs, "text")
    opened = inputs, params.evaluate, params.hardware, task.classes
    runtime = with_own_cores(params.runtime, params.hardware.threads)
    with worker_processes(runtime, initializer=open_classifier, arguments=opened) as ordered_map:
        classifier = opened_classifier()
        if runtime.workers:
            classifier.score = partial(score_with, ordered_map)
        answers = {split: _answered(split, task, classifier, inputs, observer) for split in splits}
    temperature = fitted_temperature(answers["validation"].labels, answers["validation"].probabilities)
    linear, commonest = _linear_answers(splits, classifier, inputs, params.evaluate.linear_ngrams, observer)
    leakage = LeakageCheck(_texts(inputs, "train"))
    figures: dict[str, dict[str, float]] = {}
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
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in _main(figures[split]).items()))
    write_table(outputs.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(outputs.tables / "errors.tsv", _ERRORS, _errors(answers, task.classes))
    if isinstance(classifier, NgramClassifier):
        write_table(outputs.tables / "ngrams.tsv", ("class", "ngram", "weight"), _heaviest(classifier))
    else:
        (outputs.tables / "ngrams.tsv").unlink(missing_ok=True)  # left by an earlier manual run; DVC empties the folder
    _write_plots(outputs.plots, answers["test"], task)
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, COLUMNS, _rows(answers, task.classes))
    return _main(figures["validation"])


def _open_baseline(name: str | None, inputs: EvaluationInputs, outputs: EvaluationOutputs) -> Baseline | None:
    if name is None:
        return None
    return Baseline.read(
        name, inputs.baselines, outputs.predictions, committed=inputs.committed, columns=("prediction", "probability")
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


def _answered(
    split: str, task: Task, classifier: TrainedClassifier, inputs: EvaluationInputs, observer: Observer
) -> _Answers:
    encoded = EncodedTexts(inputs.encoded / split, classifier.model.config)
    encoded.report(task, observer)
    found = classifier.probabilities(list(encoded.whole()), observer)
    return _Answers(_texts(inputs, split), np.asarray(encoded.labels), found, encoded.truncated)


def _linear_answers(
    splits: Sequence[str], classifier: TrainedClassifier, inputs: EvaluationInputs, longest: int, observer: Observer
) -> tuple[dict[str, Floats], int]:
    """Return the linear baseline's probabilities by split, and the most frequent class in train.

    The baseline trains on the same tokens as the model, but on untruncated texts. longest: maximum n of its n-grams.
    """
    observer.say("training the linear baseline")
    config = classifier.model.config
    train, *rest = (EncodedTexts(inputs.encoded / split, config) for split in ("train", *splits))
    model = linear_baseline(config, train.whole(), np.asarray(train.labels), longest)
    commonest = int(np.bincount(train.labels).argmax())
    return {encoded.split: probabilities_of(model.logits(encoded.whole())) for encoded in rest}, commonest


def _texts(inputs: EvaluationInputs, split: str) -> list[str]:
    return [row["text"] for row in read_rows(inputs.corpus / f"{split}.jsonl")]


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
