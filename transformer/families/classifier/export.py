"""export: writes the classifier as a bundle, and checks that it reproduces the predictions of evaluate."""

from collections.abc import Sequence

from transformer.core.errors import in_markdown
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task, with_labels
from transformer.families.classifier.classifier import AnsweringParams, Classifier, Prediction
from transformer.inference.exporting import ExportStageParams, Model, Row, export_model

_TOLERANCE = 1e-4  # of a probability; summation order changes it far less


class Params(ExportStageParams):
    """The stage's parameters."""

    evaluate: AnsweringParams


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of matching predictions."""
    task = with_labels(task, paths.corpus)
    model = Model(
        task=task,
        title=task.card_title,
        use=task.card_use.format(classes=in_a_row([*map(in_markdown, task.classes)])),
        main_metric="accuracy",
        question="text",
    )
    return export_model(model, params, paths=paths, answers=_answers, observer=observer)


def in_a_row(names: Sequence[str]) -> str:
    """Join alternatives as in a sentence: `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _answers(classifier: Classifier, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    predictions = classifier.classify([row["text"] for row in rows])
    return [(str(answer), _agrees(answer, row)) for answer, row in zip(predictions, rows, strict=True)]


def _agrees(answer: Prediction, row: Row) -> bool:
    near = abs(answer.probability - float(row["probability"])) <= _TOLERANCE
    return near and answer.label == row["prediction"]
