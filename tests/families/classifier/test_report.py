"""What a classifier's report says of its result."""

import re
from pathlib import Path

from transformer.core.files import write_json
from transformer.core.task import Task
from transformer.families.classifier import FAMILY
from transformer.families.classifier.report import ClassifierReporting
from transformer.reporting.result import Files

TASK = Task(name="reviews", family=FAMILY, classes=("bad", "good"), unit="review")
CONFUSION = "actual\tpredicted\treviews\nbad\tbad\t3\nbad\tgood\t1\ngood\tbad\t2\ngood\tgood\t4\n"


def written(root: Path, scored: dict[str, float], **more: str) -> Files:
    """A result with these figures and little else. more: tables by name."""
    reports = root / "reports" / "reviews"
    write_json(reports / "evaluation.json", {"test": scored, "validation": scored})
    write_json(reports / "training.json", {"best_epoch": 1, "epochs": 2})
    (reports / "history.tsv").write_text("epoch\tstep\tvalidation_loss\n1\t1\t1\n2\t2\t1\n")
    (reports / "updates.tsv").write_text("step\tlearning_rate\ttrain_loss\n1\t1\t1\n")
    for path, text in {
        "plots/confusion.tsv": CONFUSION,
        "plots/classes.tsv": "class\treviews\trecall\tprecision\tf1\nbad\t4\t0.75\t0.6\t0.67\n",
        "plots/reliability.tsv": "probability\tpositive\tcalibrated\n0.5\t0.4\t0.5\n",
        "plots/accuracy_by_length.tsv": "words\treviews\taccuracy\n1-10\t10\t0.7\n",
        "plots/roc.tsv": "false_positive_rate\ttrue_positive_rate\n0\t0\n1\t1\n",
        "plots/precision_recall.tsv": "recall\tprecision\n0\t1\n1\t0.5\n",
        "tables/errors.tsv": "split\tlabel\tprediction\tprobability\ttext\n",
        **{f"tables/{name}.tsv": text for name, text in more.items()},
    }.items():
        (reports / path).parent.mkdir(exist_ok=True)
        (reports / path).write_text(text)
    return Files(root, "reviews")


SCORED = {
    "accuracy": 0.7,
    "linear_accuracy": 0.6,
    "accuracy_minus_linear": 0.1,
    "majority_accuracy": 0.6,
    "balanced_accuracy": 0.7,
}


def test_a_classifiers_mistakes_are_counted(tmp_path: Path) -> None:
    assert "It calls 1 bad one good and 2 good ones bad." in ClassifierReporting().weaknesses(
        TASK, written(tmp_path, SCORED)
    )


def test_a_classifier_without_errors_has_a_report(tmp_path: Path) -> None:
    result = written(tmp_path, SCORED)
    confusion = result.reports / "plots/confusion.tsv"
    confusion.write_text(re.sub(r"\d+$", "0", confusion.read_text(), flags=re.MULTILINE))
    assert not any("calls" in line for line in ClassifierReporting().weaknesses(TASK, result))
    assert "Confident errors" not in [section.title for section in ClassifierReporting().sections(TASK, result)]


def test_a_model_of_ngrams_shows_them_and_no_curves(tmp_path: Path) -> None:
    result = written(tmp_path, SCORED, ngrams="class\tngram\tweight\ngood\twell worth\t0.66\n")
    write_json(result.reports / "training.json", {"ngrams": 400})
    titles = {section.title: section for section in ClassifierReporting().sections(TASK, result)}
    assert "Learning curves" not in titles
    (table,) = titles["N-grams that weigh most"].tables
    assert list(table.rows) == [["good", "well worth", "0.66"]]
