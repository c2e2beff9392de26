"""What evaluation, summary and page say of a classifier."""

from pathlib import Path
from typing import Any

import pytest

from tests.data.cases import json_lines, write
from tests.stages import Stages
from transformer.commands.summary import scores_table
from transformer.core.files import read_json, write_json, write_table
from transformer.core.task import open_task, with_labels
from transformer.evaluation.headline import headline, metric_label
from transformer.families.classifier.report import ClassifierReporting, with_intervals
from transformer.reporting.result import Files, learning_curves


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stages:
    """Evaluated, with labels of the corpus's own; fraud, the rarer one, comes first."""
    rows = [
        {"label": ("legit", "fraud")[n % 5 == 0], "text": f"{'odd' if n % 5 == 0 else 'even'} {n}"} for n in range(60)
    ]
    files = dict.fromkeys(("train.jsonl", "validation.jsonl", "test.jsonl"), json_lines(rows))
    changes: dict[str, Any] = {"download.source": "files", "download.path": str(write(tmp_path / "in", files))}
    changes |= {"download.labels": "train", "download.near_duplicates": "keep"}
    changes |= {"train.epochs": 1, "evaluate.bootstrap_samples": 0}
    found = Stages(tmp_path, "sentiment", monkeypatch, changes)
    found.run("download", "tokenize", "build_vocab", "train", "evaluate")
    return found


def test_scores_of_one_of_two_labels_say_which_and_mistakes_are_counted(stages: Stages) -> None:
    assert "f1, roc_auc, pr_auc: of the label legit" in stages.observer.lines
    evaluation = read_json(stages.reports / "evaluation.json")
    assert evaluation["signatures"] == dict.fromkeys(("f1", "roc_auc", "pr_auc"), "label:legit")
    table = scores_table("sentiment", evaluation)
    assert "F1 of legit" in table and "ROC-AUC of legit" in table
    assert headline("f1", evaluation).startswith("F1 of legit ")
    assert headline("accuracy", evaluation).startswith("Accuracy ")
    assert metric_label("chrf", {"signatures": {"chrf": "nrefs:1|case:lc"}}) == "chrF", "no label"
    task, result = with_labels(open_task("sentiment"), Path("data/sentiment/corpus")), Files(Path(), "sentiment")
    sections = {section.title: section for section in ClassifierReporting().sections(task, result)}
    scores = sections["Scores"].tables[0]
    assert {"F1 of legit", "ROC-AUC of legit", "PR-AUC of legit", "accuracy"} <= {*scores.header}
    drawn = "\n".join(picture.alt for section in sections.values() for picture in section.pictures)
    assert "ROC, of the label legit" in drawn and "Precision and recall, of the label legit" in drawn
    confusion = "actual\tpredicted\treviews\nfraud\tfraud\t3\nfraud\tlegit\t{}\nlegit\tfraud\t{}\nlegit\tlegit\t4\n"
    for mistakes, said in (((1, 2), ["It calls 1 fraud one legit and 2 legit ones fraud."]), ((0, 0), [])):
        (stages.reports / "plots/confusion.tsv").write_text(confusion.format(*mistakes))
        assert [line for line in ClassifierReporting().weaknesses(task, result) if "calls" in line] == said
    assert "Confident errors" in sections
    curves = ClassifierReporting().curves(task)
    assert learning_curves(result, curves).pictures
    examples = {each.title: dict(each.fields) for each in ClassifierReporting().texts_with_answers(task, result)}
    assert [*examples] == ["right, typical", "least certain", "wrong, yet most certain"]
    assert str(examples["right, typical"]["answer"]).startswith(str(examples["right, typical"]["label"]))
    wrong = examples["wrong, yet most certain"]
    assert not str(wrong["answer"]).startswith(str(wrong["label"]))
    write_json(stages.reports / "training.json", {"ngrams": 400})
    assert not learning_curves(Files(Path(), "sentiment"), curves).pictures
    write_table(stages.reports / "tables/ngrams.tsv", ("class", "ngram", "weight"), [("legit", "even 1", "0.66")])
    write_table(stages.reports / "tables/errors.tsv", ("split", "label", "prediction", "probability", "text"), [])
    sections = {each.title: each for each in ClassifierReporting().sections(task, Files(Path(), "sentiment"))}
    assert "Confident errors" not in sections
    assert [*sections["N-grams that weigh most"].tables[0].rows] == [["legit", "even 1", "0.66"]]


def test_wilsons_interval_of_a_share() -> None:
    """Newcombe 1998, table I, method 3: 81 of 263."""
    columns = {"accuracy": [str(81 / 263), "1.0"], "reviews": ["263", "10"]}
    found = with_intervals(columns, "accuracy", "reviews")
    assert [float(found[name][0]) for name in ("low", "high")] == pytest.approx([0.2553, 0.3662], abs=1e-4)
    assert float(found["low"][1]) < 0.75 and float(found["high"][1]) == 1.0
