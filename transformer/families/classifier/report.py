"""report: content of the report page of a classifier."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from transformer.core.task import Reporting, Task
from transformer.evaluation.bootstrap import Floats
from transformer.evaluation.headline import headline, percent, value
from transformer.families.classifier.scores import resampled_scores, scores
from transformer.reporting.content import (
    Columns,
    Example,
    Picture,
    Section,
    Table,
    confusion_chart,
    interval_chart,
    line_chart,
    reliability_chart,
)
from transformer.reporting.result import Files, score_table

Row = dict[str, str]


class ClassifierReporting(Reporting):
    """Report and comparison of classifiers."""

    def summary(self, result: Files) -> str:
        """Return a one-line summary of the result's quality."""
        return headline("accuracy", result.evaluation)

    def weaknesses(self, task: Task, result: Files) -> Iterator[str]:
        """Yield the model's weaknesses, one line each."""
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

    def curves(self, task: Task) -> Sequence[tuple[str, Mapping[str, str], str]]:
        """Return the learning curves, the most informative first."""
        return [(title, lines, unit.format(unit=task.unit)) for title, lines, unit in _CURVES]

    def texts_with_answers(self, task: Task, result: Files) -> Iterator[Example]:
        """Yield a right answer of median certainty, the least certain one, and the most certain wrong one."""
        rows = [row for row in result.table("predictions.tsv") if row["split"] == result.main_split]
        rows.sort(key=lambda row: float(row["probability"]))
        right = [row for row in rows if row["label"] == row["prediction"]]
        wrong = [row for row in rows if row["label"] != row["prediction"]]
        chosen = {"right, typical": right[len(right) // 2 :][:1], "least certain": rows[:1]}
        for title, found in (chosen | {"wrong, yet most certain": wrong[-1:]}).items():
            for row in found:
                answer = f"{row['prediction']}, {percent(float(row['probability']))}"
                yield Example(title, [(task.unit, row["text"]), ("answer", answer), ("label", row["label"])])

    def sections(self, task: Task, result: Files) -> Iterator[Section]:
        """Yield the sections of the page, the most informative first."""
        yield score_table(result, METRICS if len(task.classes) == 2 else METRICS_OF_MANY)
        text = "Intervals of accuracy and reliability are Wilson's, of 95 %."
        yield Section(
            "Right and wrong", text, tables=list(_by_class(task, result)), pictures=list(_charts(task, result))
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


def _by_class(task: Task, result: Files) -> Iterator[Table]:
    names = ("recall", "precision", "f1")
    rows = [
        [row["class"], f"{int(row[task.units]):,}", *(percent(float(row[name])) for name in names)]
        for row in result.table("plots/classes.tsv")
    ]
    yield Table(f"By label, {result.main_split}", ["label", task.units, "recall", "precision", "F1"], rows)


def _confusion(task: Task, result: Files) -> Picture:
    cells = {(row["actual"], row["predicted"]): int(row[task.units]) for row in result.table("plots/confusion.tsv")}
    labels = list(dict.fromkeys(actual for actual, _ in cells))
    counts = [[cells[actual, predicted] for predicted in labels] for actual in labels]
    return confusion_chart(f"{task.units.capitalize()} by label and prediction", labels, counts)


_NORMAL = 1.96  # standard deviations of 95 %


def with_intervals(columns: Columns, share: str, count: str) -> Columns:
    """Add the columns low and high: Wilson's interval (1927) of a share of so many."""
    ends = [_wilson(float(p), int(n)) for p, n in zip(columns[share], columns[count], strict=True)]
    return {**columns, "low": [f"{low:.6f}" for low, _ in ends], "high": [f"{high:.6f}" for _, high in ends]}


def _wilson(share: float, count: int) -> tuple[float, float]:
    z = _NORMAL**2 / count
    middle, width = share + z / 2, _NORMAL * math.sqrt(share * (1 - share) / count + z / (4 * count))
    return max((middle - width) / (1 + z), 0.0), min((middle + width) / (1 + z), 1.0)


def _claim(task: Task, *, many: bool = False) -> str:
    """Return what a probability refers to: class 1 of two, or, with more classes, the prediction being correct."""
    if len(task.classes) > 2:
        return "right answers" if many else "the answer"
    return f"{task.classes[1]} {task.units}" if many else f"a {task.classes[1]} {task.unit}"


def _charts(task: Task, result: Files) -> Iterator[Picture]:
    yield _confusion(task, result)
    yield reliability_chart(
        "Reliability",
        with_intervals(result.columns("plots/reliability.tsv"), "positive", task.units),
        x_label=f"mean probability of {_claim(task)}",
        y_label=f"share of {_claim(task, many=True)}",
        count=task.units,
    )
    lengths = with_intervals(result.columns("plots/accuracy_by_length.tsv"), "accuracy", task.units)
    yield interval_chart(
        "Accuracy by length (words)",
        lengths,
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
