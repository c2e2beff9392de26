"""What evaluate says about texts that were not read as they stand, answers that stop short, and missing classes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stages import Stages
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_rows, read_table
from transformer.core.task import open_task
from transformer.data.vocabulary import read_vocabularies
from transformer.families.classifier.report import ClassifierReporting, _charts
from transformer.reporting.result import Files

TRAINED = ("download", "tokenize", "build_vocab", "train")
FEW = {"train.epochs": 1, "evaluate.bootstrap_samples": 0}


def encoded(stages: Stages, side: str) -> tuple[list[int], float]:
    """The number of tokens of each text of validation, and the share of unknown ones."""
    data = stages.folder / "data" / stages.task
    vocabulary = read_vocabularies(data / "vocab", side)[side]
    rows = vocabulary.encode([row[side] for row in read_rows(data / "tokens" / "validation.jsonl")])
    ids = [token for row in rows for token in row[1:-1].tolist()]
    return [len(row) - 2 for row in rows], round(ids.count(vocabulary.unknown_id) / len(ids), 6)


@pytest.mark.parametrize("policy", ["cut", "split"])
def test_translations_have_rates_and_another_corpus_is_refused(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {"model.max_length": 14, "evaluate.long_sources": policy, "evaluate.max_length": 1}
    changes |= {"evaluate.head_texts": 3}
    stages = Stages(tmp_path, "translation", monkeypatch, FEW | changes)
    stages.run(*TRAINED, "evaluate")
    evaluation = read_json(stages.reports / "evaluation.json")
    found, (lengths, unknown) = evaluation["validation"], encoded(stages, "source")
    long = round(sum(length > 12 for length in lengths) / len(lengths), 6)
    assert 0 < long < 1
    assert found["truncated_rate" if policy == "cut" else "split_rate"] == long
    assert ("truncated_rate" in found) != ("split_rate" in found)
    assert found["source_unknown_rate"] == unknown > 0
    assert 0 < found["unfinished_rate"] <= 1
    signature = evaluation["signatures"]["perplexity"]
    heads = [row["attention"] for row in read_table(stages.reports / "tables/heads.tsv")]
    assert len(heads) == 6 and len({*heads}) == 3, "two heads of each attention"
    assert signature.startswith("vocabulary:") and signature.endswith("|cut:14"), "perplexity is of cut pairs"
    stages.content["translation"]["download"]["sample_rows"]["validation"] -= 1
    stages.run("download")
    with pytest.raises(UserError, match=r"^validation has \d+ rows, and \d+ encoded ones: run `dvc repro`$"):
        stages.run("evaluate")


def test_a_split_without_one_of_the_classes_with_long_texts_and_unknown_words_is_said(
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
    changes: dict[str, Any] = {"download.source": "files", "download.path": str(corpus), "model.max_length": 32}
    changes |= {"download.labels": {0: "negative", 1: "positive"}}
    changes |= {"tokenize.kind": "spacy", "vocab.kind": "word", "vocab.min_frequency": 3}
    stages = Stages(tmp_path, "sentiment", monkeypatch, FEW | changes)
    stages.run(*TRAINED)
    positive = "warning: validation has no positive review: its metrics say nothing about that class"
    negative = "warning: test has no negative review: its metrics say nothing about that class"
    assert positive in stages.observer.lines
    assert not any("train has no" in line for line in stages.observer.lines)
    stages.observer.lines.clear()
    stages.run("evaluate")
    assert {positive, negative} <= {*stages.observer.lines}
    task, result = open_task("sentiment"), Files(stages.folder, "sentiment")
    assert result.evaluation["validation"]["truncated_rate"] == result.evaluation["test"]["truncated_rate"] == 0.25
    assert result.evaluation["validation"]["unknown_rate"] == encoded(stages, "text")[1] > 0
    said = [*ClassifierReporting().weaknesses(task, result)]
    assert "25.0 % of the reviews are longer than model.max_length: the rest was not read." in said
    assert len([*_charts(task, result)]) == 3, "no curve of one class against the other"
