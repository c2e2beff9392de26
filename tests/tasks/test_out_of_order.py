"""A stage alone, over what other parameters left."""

import json
from pathlib import Path

import pytest

from tests.stages import Stages
from transformer.core.errors import UserError


def test_perplexities_of_cut_pairs_are_measured_otherwise_and_another_corpus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"model.max_length": 12, "train.epochs": 1, "evaluate.bootstrap_samples": 0, "evaluate.max_length": 8}
    stages = Stages(tmp_path, "translation", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train", "evaluate")
    signatures = json.loads((stages.reports / "evaluation.json").read_text(encoding="utf-8"))["signatures"]
    assert signatures["perplexity"].startswith("vocabulary:") and signatures["perplexity"].endswith("|cut:12")
    rows = stages.content["translation"]["download"]["sample_rows"]
    rows["validation"] -= 1
    stages.run("download")
    with pytest.raises(UserError, match=r"^validation has \d+ rows, and \d+ encoded ones: run `dvc repro`$"):
        stages.run("evaluate")
