"""Training in bf16: as good as in fp32, on a part of the sample corpus, and slower on some CPUs."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.small import prepare, smoke, train
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.training import stage

SETTINGS: dict[str, dict[str, Any]] = {
    "download": {"sample_rows": {"train": 1000, "validation": 150, "test": 10}},
    "tokenize": {"kind": "whitespace"},
    "model": {"d_model": 64, "heads": 4, "d_ff": 128, "encoder_layers": 1, "decoder_layers": 1},
    "train": {
        "epochs": 4,
        "batch_size": 16,
        "patience": None,
        "averaging": "none",
        "learning_rate": 6e-3,
        "warmup": 40,
    },
}


@pytest.mark.stress
def test_bf16_reaches_the_quality_of_fp32(tmp_path: Path) -> None:
    content = smoke("translation", SETTINGS)
    prepare(content, "translation", tmp_path / "data")
    found = {}
    for precision in ("fp32", "bf16"):
        content["hardware"]["precision"] = precision
        train(content, "translation", tmp_path / "data", tmp_path / precision, observer=Observer())
        found[precision] = read_json(tmp_path / precision / "reports/translation/training.json")
        assert found[precision]["precision"] == precision
    assert found["fp32"]["validation_perplexity"] < 20, "learned nothing, so precision cannot matter"
    # Precisions with the same seed differ by 0.2 %.
    assert found["bf16"]["validation_loss"] == pytest.approx(found["fp32"]["validation_loss"], rel=0.01)
    assert found["bf16"]["validation_loss"] != found["fp32"]["validation_loss"]


class Lines(Observer):
    """What training says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(("precision", "slower", "warned"), [("bf16", True, 1), ("bf16", False, 0), ("fp32", True, 0)])
def test_a_cpu_that_is_slower_in_bf16_says_so(
    precision: str, slower: bool, warned: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "loses_by_bf16", lambda: slower)
    content = smoke("sentiment", {"download": {"sample_rows": {"train": 20, "validation": 4, "test": 4}}})
    content["hardware"]["precision"] = precision
    prepare(content, "sentiment", tmp_path / "data")
    observer = Lines()
    train(content, "sentiment", tmp_path / "data", tmp_path / "trained", observer=observer)
    assert sum(line.startswith("warning: this CPU is slower in bf16") for line in observer.lines) == warned
