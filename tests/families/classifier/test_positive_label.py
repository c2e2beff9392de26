"""Scores that are about one of two labels say which."""

from pathlib import Path
from typing import Any

import pytest

from tests.data.cases import json_lines, write
from tests.stages import Stages
from transformer.commands.summary import scores_table
from transformer.core.files import read_json
from transformer.core.task import open_task, with_labels
from transformer.evaluation.headline import headline, metric_label
from transformer.families.classifier.report import ClassifierReporting
from transformer.reporting.result import Files


def test_evaluation_summary_and_page_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of the corpus's own; fraud, the rarer one, comes first."""
    rows = [
        {"label": ("legit", "fraud")[n % 5 == 0], "text": f"{'odd' if n % 5 == 0 else 'even'} {n}"} for n in range(60)
    ]
    files = dict.fromkeys(("train.jsonl", "validation.jsonl", "test.jsonl"), json_lines(rows))
    changes: dict[str, Any] = {"download.source": "files", "download.path": str(write(tmp_path / "in", files))}
    changes |= {"download.labels": "train", "download.near_duplicates": "keep"}
    changes |= {"train.epochs": 1, "evaluate.bootstrap_samples": 0}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train", "evaluate")
    assert "f1, roc_auc, pr_auc: of the label legit" in stages.observer.lines
    evaluation = read_json(stages.reports / "evaluation.json")
    assert evaluation["signatures"] == dict.fromkeys(("f1", "roc_auc", "pr_auc"), "label:legit")
    table = scores_table("sentiment", evaluation)
    assert "F1 of legit" in table and "ROC-AUC of legit" in table
    assert headline("f1", evaluation).startswith("F1 of legit ")
    assert headline("accuracy", evaluation).startswith("Accuracy ")
    assert metric_label("chrf", {"signatures": {"chrf": "nrefs:1|case:lc"}}) == "chrF", "no label"
    task = with_labels(open_task("sentiment"), tmp_path / "data" / "sentiment" / "corpus")
    sections = [*ClassifierReporting().sections(task, Files(tmp_path, "sentiment"))]
    (scores,) = (section.tables[0] for section in sections if section.title == "Scores")
    assert {"F1 of legit", "ROC-AUC of legit", "PR-AUC of legit", "accuracy"} <= {*scores.header}
    drawn = "\n".join(picture.alt for section in sections for picture in section.pictures)
    assert "ROC, of the label legit" in drawn and "Precision and recall, of the label legit" in drawn
