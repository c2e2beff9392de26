"""export: the reviewer as a bundle, which must classify as evaluate did."""

from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, StageParams
from transformer.export.config import ExportParams
from transformer.export.exporting import ExportInputs, Model, Row, check_bundle, export_bundle
from transformer.families.classifier.decoding.labels import EvaluateParams, Prediction, Reviewer
from transformer.training.config import TrainParams

_TOLERANCE = 1e-4  # of a probability: sums in another order differ far below it
_MODEL = Model(
    task="sentiment",
    title="Sentiment Transformer",
    use="""\
Says whether a review is negative or positive. Trained by the `transformer` workflow.

    import transformer
    model = transformer.load("this/folder")
    model.classify(["..."])
""",
    main_metric="accuracy",
    question="text",
)


class Params(StageParams):
    """What the stage reads."""

    train: TrainParams
    evaluate: EvaluateParams
    export: ExportParams
    hardware: Hardware


def run(params: Params, *, inputs: ExportInputs, bundle: Path, observer: Observer) -> dict[str, float]:
    """Write the bundle and check it. Returns the number of answers that agreed."""
    compute = prepare(params.hardware)
    export_bundle(bundle, _MODEL, inputs, decoding=params.evaluate.answering(), train=params.train)
    return check_bundle(
        bundle,
        _MODEL,
        inputs.predictions,
        _answers,
        limit=params.export.verify_rows,
        device=compute.device.type,
        observer=observer,
    )


def _answers(reviewer: Reviewer, rows: Sequence[Row]) -> list[tuple[str, bool]]:
    predictions = reviewer.classify([row["text"] for row in rows])
    return [(str(answer), _agrees(answer, row)) for answer, row in zip(predictions, rows, strict=True)]


def _agrees(answer: Prediction, row: Row) -> bool:
    near = abs(answer.probability - float(row["probability"])) <= _TOLERANCE
    return near and answer.label == row["prediction"]
