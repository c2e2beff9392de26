"""report: content of the report page of a classifier."""

from collections.abc import Iterator, Sequence

import numpy as np

from transformer.core.task import Reporting, Task
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.headline import headline, percent, value
from transformer.families.classifier.scores import resampled_scores, scores
from transformer.reporting.content import Picture, Section, Table, bar_chart, line_chart
from transformer.reporting.result import Files, learning_curves, score_table

Row = dict[str, str]


class ClassifierReporting(Reporting):
    """Report and comparison of classifiers."""

    def summary(self, result: Files) -> str:
        """Return a one-line summary of the result's quality."""
        return headline("accuracy", result.evaluation)

    def weaknesses(self, task: Task, result: Files) -> Iterator[str]:
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
        mistakes = (
            sorted(mistakes, key=lambda row: -int(row[task.units]))[:_SHOWN] if len(task.classes) > 2 else mistakes
        )
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

    def sections(self, task: Task, result: Files) -> Iterator[Section]:
        """Yield the sections of the page, the most informative first."""
        yield score_table(result, METRICS if len(task.classes) == 2 else METRICS_OF_MANY)
        if "epochs" in result.training:
            yield learning_curves(
                result, [(title, lines, unit.format(unit=task.unit)) for title, lines, unit in _CURVES]
            )
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
            yield Section(
                "Confident errors", text, tables=[Table("The most confident errors", header, rows, long=True)]
            )

    def texts(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the fields that must be equal in both systems' predictions."""
        return [(row["text"], row["label"]) for row in rows]

    def scored(
        self, task: Task, systems: Sequence[Sequence[Row]], samples: int
    ) -> list[dict[str, tuple[float, Floats]]]:
        """Return per system the accuracy and F1, with two classes also ROC-AUC: score and bootstrap samples, by metric.

        If a corpus defines its own two labels, the positive one is unknown here, so only accuracy is computed.
        """
        names = {row[column] for rows in systems for row in rows for column in ("label", "prediction")}
        if names <= {*task.classes} and not _of_many(systems):
            return [_scored(rows, task.classes, samples, of_the_second=len(task.classes) == 2) for rows in systems]
        found = [_scored(rows, sorted(names), samples, of_the_second=False) for rows in systems]
        return [{name: each[name] for name in each if len(names) > 2 or name == "accuracy"} for each in found]

    def differing(self, metric: str, one: Sequence[Row], two: Sequence[Row]) -> int:
        """Count the texts on which two systems differ in a way that affects the metric."""
        names = ("prediction", "probability") if metric == "roc_auc" else ("prediction",)
        return sum(any(first[name] != second[name] for name in names) for first, second in zip(one, two, strict=True))


def _of_many(systems: Sequence[Sequence[Row]]) -> bool:
    """True if a prediction has a probability too low for the better of two classes."""
    return any(float(row["probability"]) < 0.4999 for rows in systems for row in rows)


def _scored(
    rows: Sequence[Row], classes: Sequence[str], samples: int, *, of_the_second: bool
) -> dict[str, tuple[float, Floats]]:
    """of_the_second: use the probabilities as those of the second class; else use the predictions alone."""
    labels = np.array([classes.index(row["label"]) for row in rows], dtype=np.int8)
    answered = np.array([classes.index(row["prediction"]) for row in rows])
    probability = np.array([max(float(row["probability"]), 0.500001) for row in rows])  # 0.5 means the second class
    # With many classes the file only has the prediction's probability. A split may contain only one or two of them.
    given = (
        np.where(answered == 1, probability, 1 - probability)
        if of_the_second
        else np.eye(max(2, len(classes)))[answered]
    )
    own, drawn = scores(labels, given), resampled_scores(labels, given, samples)
    return {name: (own[name], values) for name, values in drawn.items() if name in own}


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
            of_label = f"{title}, of the label {task.classes[1]}"
            yield line_chart(of_label, points, x=x, ys={y: label}, x_label=x.replace("_", " "), y_label=label)
