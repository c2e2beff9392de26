"""The figures of a classifier: what the trained model attends to in the texts that were chosen."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from tests.stages import Stages
from transformer.core.params import stage_params
from transformer.core.task import open_task
from transformer.families.classifier.figures import classify_with_attention, drawings_of
from transformer.families.classifier.torch_classifier import TorchClassifier, open_trained
from transformer.reporting.style import FILE

TEXTS = ["A fine film.", "word " * 60]
_TEXT = "{http://www.w3.org/2000/svg}text"


def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooling: str) -> Stages:
    few = {"train": 24, "validation": 24, "test": 24}
    changes = {"download.sample_rows": few, "train.epochs": 1, "model.pooling": pooling, "figures.sentences": TEXTS}
    stages = Stages(tmp_path, "sentiment", monkeypatch, changes)
    stages.run("download", "tokenize", "build_vocab", "train", "figures")
    return stages


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_maps_are_of_the_chosen_texts(pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = drawn(tmp_path, monkeypatch, pooling).reports / "figures"
    pooled = {"pooled_attention_1", "pooled_attention_2"} if pooling != "max" else set()
    names = {path.stem for path in figures.glob("*.svg")}
    assert names == {"encoder_attention_1", "encoder_attention_2"} | pooled
    short, long = (
        [text.text or "" for text in ElementTree.parse(figures / f"encoder_attention_{number}.svg").iter(_TEXT)]
        for number in (1, 2)
    )
    assert "film" in short
    assert not any("tokens are shown" in word for word in short)
    assert any("; the first " in word and " tokens are shown)" in word for word in long)
    explored = json.loads((figures / FILE).read_text(encoding="utf-8"))
    assert len(explored["texts"]) == len(TEXTS)


def test_maps_are_of_the_pass_that_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = drawn(tmp_path, monkeypatch, "mean").content
    schema = open_task("sentiment").family.stage("figures").Params
    params: Any = stage_params(content, "sentiment", schema, where=Path("params.yaml"))
    data, classes = tmp_path / "data/sentiment", ("negative", "positive")
    opened = (tmp_path / "models/sentiment/trained", data / "vocab", data / "tokens")
    classifier = open_trained(*opened, params.evaluate, torch.device("cpu"), classes)
    assert isinstance(classifier, TorchClassifier)
    review = classify_with_attention(classifier, TEXTS[0], longest=40)
    assert review.answer == next(iter(classifier.classify([TEXTS[0]])))
    for weights in review.maps.values():
        np.testing.assert_allclose(np.asarray(weights).sum(axis=-1), 1, rtol=1e-5)
    names = [drawing.name for drawing in drawings_of(classifier, TEXTS[0], layers="last")]
    assert names == ["encoder_attention", "pooled_attention"]
