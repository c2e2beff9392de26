"""report: content of the report page of a classifier."""

from collections.abc import Iterator

from transformer.core.task import Task
from transformer.evaluation.headline import headline, percent, value
from transformer.report.build import ReportParams, write_report
from transformer.report.charts import bar_chart, line_chart
from transformer.report.content import Picture, Section, Table
from transformer.report.result import Files, learning_curves, score_table

METRICS_OF_MANY = ("accuracy", "balanced_accuracy", "macro_f1", "brier", "ece", "ece_with_temperature")
METRICS = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "pr_auc", "brier", "ece", "ece_with_temperature")
_CURVES = (
    ("Loss", {"train_loss": "training", "validation_loss": "validation"}, "nats per {unit}"),
    ("Validation accuracy", {"validation_accuracy": "validation"}, "accuracy"),
)
_TRADE_OFFS = (
    ("ROC", "roc", "false_positive_rate", "true_positive_rate"),
    ("Precision and recall", "precision_recall", "recall", "precision"),
)

_UNBALANCED = 1.2
"""Threshold of majority class share times number of classes, above which accuracy alone says little."""
_SHOWN = 3
"""Kinds of errors to list, with more than two classes."""

Params = ReportParams
run = write_report


def summary(result: Files) -> str:
    """Return a one-line summary of the result's quality."""
    return headline("accuracy", result.evaluation)


def weaknesses(task: Task, result: Files) -> Iterator[str]:
    """Yield the model's weaknesses, one line each."""
    yield _against_linear(result)
    scored = result.evaluation[result.main_split]
    if scored["majority_accuracy"] * len(task.classes) > _UNBALANCED:
        always, balanced = (value(name, scored[name]) for name in ("majority_accuracy", "balanced_accuracy"))
        yield f"The labels are unbalanced: the most common one is right for {always}; balanced accuracy {balanced}."
    if share := scored.get("truncated_rate"):
        yield f"{percent(share)} of the {task.units} are longer than model.max_length: the rest was not read."
    mistakes = [row for row in result.table("plots/confusion.tsv") if row["actual"] != row["predicted"]]
    mistakes = [row for row in mistakes if int(row[task.units])]
    mistakes = sorted(mistakes, key=lambda row: -int(row[task.units]))[:_SHOWN] if len(task.classes) > 2 else mistakes
    counts = " and ".join(
        f"{int(row[task.units]):,} {row['actual']} {'one' if row[task.units] == '1' else 'ones'} {row['predicted']}"
        for row in mistakes
    )
    if counts:
        yield f"It calls {counts}."
    lengths = result.table("plots/accuracy_by_length.tsv")
    if len(lengths) > 1:
        worst = min(lengths, key=lambda row: float(row["accuracy"]))
        accuracy = value("accuracy", float(worst["accuracy"]))
        of = f"{worst[task.units]} {task.unit if worst[task.units] == '1' else task.units}"
        yield f"Weakest by length: accuracy {accuracy} at {worst['words']} words ({of})."


def _against_linear(result: Files) -> str:
    """Return the comparison with the linear baseline."""
    linear = value("accuracy", result.evaluation[result.main_split]["linear_accuracy"])
    return f"A linear model on the same tokens has {linear}: this one is {_lead(result, 'linear', 'it')}."


def _lead(result: Files, other: str, called: str) -> str:
    """Return the difference to another system in points, with its interval."""
    figures, name = result.evaluation[result.main_split], f"accuracy_minus_{other}"
    ends = [figures[f"{name}_{end}"] for end in ("low", "high") if f"{name}_{end}" in figures]
    sure = f" (95 % interval {100 * ends[0]:+.1f} to {100 * ends[1]:+.1f})" if ends else ""
    return f"{100 * figures[name]:+.1f} points from {called}{sure}"


def sections(task: Task, result: Files) -> Iterator[Section]:
    """Yield the sections of the page, the most informative first."""
    yield score_table(result, METRICS if len(task.classes) == 2 else METRICS_OF_MANY)
    if "epochs" in result.training:
        yield learning_curves(result, [(title, lines, unit.format(unit=task.unit)) for title, lines, unit in _CURVES])
    yield Section(
        "Right and wrong",
        tables=[*_by_class(task, result), _confusion(task, result)],
        pictures=list(_charts(task, result)),
    )
    if (result.reports / "tables/ngrams.tsv").exists():
        ngrams = [list(row.values()) for row in result.table("tables/ngrams.tsv")]
        text = "Each adds its weight to the logit of a class where it occurs."
        table = Table("By label, the heaviest first", ["label", "n-gram", "weight"], ngrams, long=True)
        yield Section("N-grams that weigh most", text, tables=[table])
    rows = [list(row.values()) for row in result.by_split("tables/errors.tsv")]
    header = ["split", "label", "prediction", "probability", task.unit]
    text = "What the model was most certain of and wrong about, of each split."
    if rows:
        yield Section("Confident errors", text, tables=[Table("The most confident errors", header, rows, long=True)])


def _by_class(task: Task, result: Files) -> Iterator[Table]:
    names = ("recall", "precision", "f1")
    rows = [
        [row["class"], f"{int(row[task.units]):,}", *(percent(float(row[name])) for name in names)]
        for row in result.table("plots/classes.tsv")
    ]
    yield Table(f"By label, {result.main_split}", ["label", task.units, "recall", "precision", "F1"], rows)


def _confusion(task: Task, result: Files) -> Table:
    cells = {(row["actual"], row["predicted"]): row[task.units] for row in result.table("plots/confusion.tsv")}
    labels = list(dict.fromkeys(actual for actual, _ in cells))
    rows = [[f"actually {actual}", *(cells[actual, predicted] for predicted in labels)] for actual in labels]
    return Table(
        f"{task.units.capitalize()} by label and prediction", ["", *(f"predicted {label}" for label in labels)], rows
    )


def _claim(task: Task, *, many: bool = False) -> str:
    """Return what a probability refers to: class 1 of two, or, with more classes, the prediction being correct."""
    if len(task.classes) > 2:
        return "right answers" if many else "the answer"
    return f"{task.classes[1]} {task.units}" if many else f"a {task.classes[1]} {task.unit}"


def _charts(task: Task, result: Files) -> Iterator[Picture]:
    reliability = {"positive": "as predicted", "calibrated": "perfectly calibrated"}
    calibration = result.columns("plots/reliability.tsv")
    yield line_chart(
        "Reliability",
        calibration,
        x="probability",
        ys=reliability,
        x_label=f"mean probability of {_claim(task)}",
        y_label=f"share of {_claim(task, many=True)}",
    )
    yield bar_chart(
        "Accuracy by length",
        result.columns("plots/accuracy_by_length.tsv"),
        group="words",
        value="accuracy",
        count=task.units,
        label="words",
        x_label="accuracy",
    )
    for title, name, x, y in _TRADE_OFFS if len(task.classes) == 2 else ():
        label = y.replace("_", " ")
        points = result.columns(f"plots/{name}.tsv")
        if points:  # empty for a split with one class
            yield line_chart(title, points, x=x, ys={y: label}, x_label=x.replace("_", " "), y_label=label)
