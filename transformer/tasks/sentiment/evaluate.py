"""evaluate: accuracy, F1 and ROC-AUC on validation and test."""

from transformer.evaluation.inputs import EvaluationInputs, EvaluationOutputs
from transformer.evaluation.sentiment import confusion, roc, scores
from transformer.files import read_rows, write_json, write_table
from transformer.observer import Observer
from transformer.params.schema import Hardware, StageParams
from transformer.tasks.sentiment.encoded import EncodedReviews
from transformer.tasks.sentiment.inference import LABELS, ClassificationParams, Reviewer, prediction
from transformer.training.device import prepare

COLUMNS = ("split", "text", "label", "prediction", "probability")


class Params(StageParams):
    """What the stage reads."""

    evaluate: ClassificationParams
    hardware: Hardware


def run(
    params: Params, *, inputs: EvaluationInputs, outputs: EvaluationOutputs, observer: Observer
) -> dict[str, float]:
    """Write figures a split and every answer. Returns the validation figures."""
    compute = prepare(params.hardware)
    reviewer = Reviewer(inputs.trained, inputs.vocab, inputs.tokens, params.evaluate, compute.device)
    figures: dict[str, dict[str, float]] = {}
    table: list[tuple[str, str, str, str, float]] = []
    for split in ("validation", "test"):
        reviews = EncodedReviews(inputs.encoded / split, reviewer.model.config)
        reviews.report(observer)
        positive = reviewer.positive([reviews.sequence(row) for row in range(len(reviews))], observer)
        figures[split] = scores(reviews.labels, positive) | {"reviews": len(reviews)}
        observer.say(f"{split}: " + "  ".join(f"{name} {value:g}" for name, value in figures[split].items()))
        for row, label, probability in zip(
            read_rows(inputs.corpus / f"{split}.jsonl"), reviews.labels, positive, strict=True
        ):
            table.append((split, row["text"], LABELS[label], *prediction(probability)))
        if split == "test":
            write_table(
                outputs.plots / "confusion.tsv",
                ("actual", "predicted", "reviews"),
                confusion(reviews.labels, positive, LABELS),
            )
            write_table(
                outputs.plots / "roc.tsv", ("false_positive_rate", "true_positive_rate"), roc(reviews.labels, positive)
            )
    write_json(outputs.metrics, figures)
    write_table(outputs.predictions, COLUMNS, table)
    return figures["validation"]
