"""Scores that are about one of two labels say which."""

from pathlib import Path

import pytest

from tests.data.cases import json_lines, write
from tests.stages import Said
from tests.training.small import own_torch_settings, paths_in, prepare, run_stage, smoke, train
from transformer.commands.summary import scores_table
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.task import open_task, with_labels
from transformer.evaluation.headline import headline, metric_label
from transformer.families.classifier.report import ClassifierReporting
from transformer.reporting.result import Files


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result on two labels of the corpus's own; fraud, the rarer one, comes first."""
    root = tmp_path_factory.mktemp("labels")
    rows = [
        {"label": ("legit", "fraud")[n % 5 == 0], "text": f"{'odd' if n % 5 == 0 else 'even'} {n}"} for n in range(60)
    ]
    files = dict.fromkeys(("train.jsonl", "validation.jsonl", "test.jsonl"), json_lines(rows))
    source = {"source": "files", "path": str(write(root / "in", files)), "labels": "train", "near_duplicates": "keep"}
    content = smoke("sentiment", {"download": source, "train": {"epochs": 1}, "evaluate": {"bootstrap_samples": 0}})
    prepare(content, "sentiment", root / "data" / "sentiment")
    train(content, "sentiment", root / "data" / "sentiment", root, observer=Observer())
    with own_torch_settings():
        run_stage(content, "sentiment", "evaluate", paths_in(root, "sentiment"), said := Said())
    assert "f1, roc_auc, pr_auc: of the label legit" in said.lines
    return root


def test_evaluation_and_summary_name_it(root: Path) -> None:
    evaluation = read_json(root / "reports" / "sentiment" / "evaluation.json")
    assert evaluation["signatures"] == dict.fromkeys(("f1", "roc_auc", "pr_auc"), "label:legit")
    assert "F1 of legit" in scores_table("sentiment", evaluation)
    assert "ROC-AUC of legit" in scores_table("sentiment", evaluation)
    assert headline("f1", evaluation).startswith("F1 of legit ")
    assert headline("accuracy", evaluation).startswith("Accuracy ")
    assert metric_label("chrf", {"signatures": {"chrf": "nrefs:1|case:lc"}}) == "chrF", "no label"


def test_the_page_names_it(root: Path) -> None:
    task = with_labels(open_task("sentiment"), root / "data" / "sentiment" / "corpus")
    sections = [*ClassifierReporting().sections(task, Files(root, "sentiment"))]
    (scores,) = (section.tables[0] for section in sections if section.title == "Scores")
    assert {"F1 of legit", "ROC-AUC of legit", "PR-AUC of legit", "accuracy"} <= {*scores.header}
    drawn = "\n".join(picture.alt for section in sections for picture in section.pictures)
    assert "ROC, of the label legit" in drawn and "Precision and recall, of the label legit" in drawn
