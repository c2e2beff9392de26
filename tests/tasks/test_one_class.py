"""Sentiment with too few texts of one class, and texts that are longer than the model's positions."""

import json
from pathlib import Path

import pytest

from tests.stages import Stages
from transformer.core.task import open_task
from transformer.families.classifier.report import ClassifierReporting, _charts
from transformer.reporting.result import Files


def test_a_split_without_one_of_the_classes_and_with_long_texts_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "given"
    corpus.mkdir()
    for split, labels in (("train", (0, 1)), ("validation", (0,)), ("test", (1,))):
        rows = (
            {"label": labels[number % len(labels)], "text": f"film {number} of {split}" + " now" * 40 * (number < 5)}
            for number in range(20)
        )
        (corpus / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    changes = {"download.source": "files", "download.path": str(corpus), "train.epochs": 1, "model.max_length": 32}
    changes |= {"download.labels": {0: "negative", 1: "positive"}}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes | {"evaluate.bootstrap_samples": 0})
    stages.run("download", "tokenize", "build_vocab", "train")
    positive = "warning: validation has no positive review: its metrics say nothing about that class"
    negative = "warning: test has no negative review: its metrics say nothing about that class"
    assert positive in stages.observer.lines
    assert not any("train has no" in line for line in stages.observer.lines)
    stages.observer.lines.clear()
    stages.run("evaluate")
    assert {positive, negative} <= {*stages.observer.lines}
    task, result = open_task("sentiment"), Files(stages.folder, "sentiment")
    assert result.evaluation["validation"]["truncated_rate"] == result.evaluation["test"]["truncated_rate"] == 0.25
    said = [*ClassifierReporting().weaknesses(task, result)]
    assert "25.0 % of the reviews are longer than model.max_length: the rest was not read." in said
    charts = [*_charts(task, result)]
    assert len(charts) == 2, "no curve of one class against the other"
