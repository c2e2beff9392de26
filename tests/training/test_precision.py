"""Training in bf16 reaches what training in fp32 reaches, on a part of the sample corpora."""

from pathlib import Path

import pytest

from tests.training.small import prepare, smoke, train
from transformer.files import read_json
from transformer.observer import Observer

SETTINGS = {
    "translation": {
        "download": {"sample_rows": {"train": 2000, "validation": 300, "test": 10}},
        "tokenize": {"kind": "whitespace"},
        "train": {"epochs": 8, "patience": None, "averaging": "none"},
    },
    "sentiment": {
        "download": {"sample_rows": {"train": 2000, "validation": 500, "test": 10}},
        "train": {"epochs": 4, "patience": None, "averaging": "none"},
    },
}


@pytest.mark.parametrize("task", SETTINGS)
def test_bf16_reaches_the_quality_of_fp32(task: str, tmp_path: Path) -> None:
    content = smoke(task, SETTINGS[task])
    prepare(content, task, tmp_path / "data")
    figures = {}
    for precision in ("fp32", "bf16"):
        content["hardware"]["precision"] = precision
        train(content, task, tmp_path / "data", tmp_path / precision, observer=Observer())
        figures[precision] = read_json(tmp_path / precision / f"reports/{task}/training.json")
    print(figures)
    assert figures["bf16"]["validation_loss"] == pytest.approx(figures["fp32"]["validation_loss"], rel=0.02)
    assert figures["bf16"]["validation_accuracy"] >= figures["fp32"]["validation_accuracy"] - 0.02
