"""evaluate: how good the answers on validation and test are, how sure that is, and where they fail."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transformer.checkpoint.device import prepare
from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json, write_table
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.encoded.batching import Ids
from transformer.evaluation.baseline import Baseline
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
from transformer.evaluation.leakage import LeakageCheck, words
from transformer.families.classifier.data.encoded import EncodedReviews
from transformer.families.classifier.decoding.labels import EvaluateParams, Reviewer, prediction
from transformer.families.classifier.evaluation.calibration import Bin, fitted_temperature, reliability
from transformer.families.classifier.evaluation.linear import LinearBaseline
from transformer.families.classifier.evaluation.metrics import split_figures
from transformer.families.classifier.evaluation.scores import (
    Labels,
    accuracy_by_length,
    confident_errors,
    confusion,
    precision_recall,
    roc,
)
from transformer.tasks.sentiment import LABELS

COLUMNS = ("split", "text", "label", "prediction", "probability")
_ERRORS = ("split", "label", "prediction", "probability", "text")
_SPLITS = ("validation", "test")
_SHOWN = 20  # errors of a split in their table


class Params(StageParams):
    """What the stage reads."""

    evaluate: EvaluateParams
    hardware: Hardware


@dataclass(frozen=True)
class _Answers:
    """The reviews of one split, and what the model says of them."""

    texts: list[str]
    labels: Labels
    positive: Floats
    """(N,) Probabilities of the positive class."""


def run(
    params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write figures a split, every answer, and tables. Returns the main validation figures."""
    baseline = _open_baseline(params.evaluate.baseline, inputs, outputs)
    compute = prepare(params.hardware)
    reviewer = Reviewer(inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device)
    answers = {split: _answered(split, reviewer, inputs, observer) for split in _SPLITS}
    temperature = fitted_temperature(answers["validation"].labels, answers["validation"].positive)
    linear = _linear_answers(reviewer, inputs, observer)
    leakage = LeakageCheck(_texts(inputs, "train"))
    figures: dict[str, dict[str, float]] = {}
    for split, given in answers.items():
        others = {"linear": linear[split]}
        if baseline and (rows := baseline.of_split(split, given.texts, "text", observer)):
            others["baseline"] = np.array([_positive(row, baseline.name) for row in rows])
        duplicates = leakage.check(split, given.texts, seen_from_now_on=split == "validation")
        figures[split] = split_figures(
            given.labels,
            given.positive,
            temperature=temperature,
            duplicates=duplicates,
            others=others,
            samples=params.evaluate.bootstrap_samples,
        )
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in _main(figures[split]).items()))
    write_table(outputs.tables / "duplicates.tsv", LeakageCheck.COLUMNS, leakage.rows)
    write_table(outputs.tables / "errors.tsv", _ERRORS, _errors(answers))
    _write_plots(outputs.plots, answers["test"])
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, COLUMNS, _rows(answers))
    return _main(figures["validation"])


def _open_baseline(name: str | None, inputs: EvaluationInputs, outputs: EvaluationOutputs) -> Baseline | None:
    if name is None:
        return None
    return Baseline.read(name, inputs.baselines, outputs.predictions, columns=("prediction", "probability"))


def _positive(row: Mapping[str, str], name: str) -> float:
    """The probability of the positive class in a row of predictions."""
    try:
        probability = float(row["probability"])
        return probability if LABELS.index(row["prediction"]) else 1 - probability
    except ValueError as error:
        raise UserError(
            f"{name}: `{row['prediction']}` at `{row['probability']}` is no answer: a prediction is one of"
            f" {', '.join(LABELS)}, and its probability a number"
        ) from error


def _answered(split: str, reviewer: Reviewer, inputs: EvaluationInputs, observer: Observer) -> _Answers:
    reviews = EncodedReviews(inputs.encoded / split, reviewer.model.config)
    reviews.report(observer)
    positive = reviewer.positive([reviews.sequence(row) for row in range(len(reviews))], observer)
    return _Answers(_texts(inputs, split), np.asarray(reviews.labels), positive)


def _linear_answers(reviewer: Reviewer, inputs: EvaluationInputs, observer: Observer) -> dict[str, Floats]:
    """What the linear baseline says, trained on the tokens that the model was trained on, and on all of a review."""
    observer.say("training the linear baseline")
    train, *rest = (EncodedReviews(inputs.encoded / split, reviewer.model.config) for split in ("train", *_SPLITS))
    model = LinearBaseline(_whole(train), np.asarray(train.labels), reviewer.vocabulary.size)
    return {reviews.split: model.positive(_whole(reviews)) for reviews in rest}


def _whole(reviews: EncodedReviews) -> Iterator[Ids]:
    """The ids of all reviews, not cut to the model's positions."""
    return (reviews.text[row] for row in range(len(reviews)))


def _texts(inputs: EvaluationInputs, split: str) -> list[str]:
    return [row["text"] for row in read_rows(inputs.corpus / f"{split}.jsonl")]


def _main(figures: Mapping[str, float]) -> dict[str, float]:
    """What is said while the stage runs."""
    names = ("accuracy", "accuracy_low", "accuracy_high", "f1", "loss", "roc_auc", "linear_accuracy", "duplicates")
    return {name: figures[name] for name in names if name in figures}


def _rows(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    for split, given in answers.items():
        for text, label, probability in zip(given.texts, given.labels, given.positive, strict=True):
            yield split, text, LABELS[label], *prediction(probability)


def _errors(answers: Mapping[str, _Answers]) -> Iterator[tuple[object, ...]]:
    """The most confident errors of each split."""
    for split, given in answers.items():
        for row in confident_errors(given.labels, given.positive, _SHOWN):
            yield split, LABELS[given.labels[row]], *prediction(given.positive[row]), given.texts[row]


def _write_plots(plots: Path, test: _Answers) -> None:
    labels, positive = test.labels, test.positive
    lengths = [len(words(text)) for text in test.texts]
    write_table(plots / "confusion.tsv", ("actual", "predicted", "reviews"), confusion(labels, positive, LABELS))
    write_table(plots / "roc.tsv", ("false_positive_rate", "true_positive_rate"), roc(labels, positive))
    write_table(plots / "precision_recall.tsv", ("recall", "precision"), precision_recall(labels, positive))
    write_table(plots / "reliability.tsv", Bin._fields, reliability(labels, positive))
    header = ("words", "reviews", "accuracy")
    write_table(plots / "accuracy_by_length.tsv", header, accuracy_by_length(labels, positive, lengths))
