"""Models that older versions exported open, and answer as they did.

bundles/TASK-KIND: one epoch on 60 rows of the sample corpus, exported by commit 8fe5039; answers.json is what that
commit answered, on a CPU in fp32.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import transformer

BUNDLES = sorted(Path(__file__).with_name("bundles").iterdir())


def test_there_is_one_of_each_kind() -> None:
    kinds = {path.name for path in BUNDLES}
    assert kinds == {f"{task}-{kind}" for task in ("translation", "sentiment") for kind in ("transformer", "recurrent")}


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_it_answers_as_it_did(bundle: Path) -> None:
    model: Any = transformer.load(bundle, device="cpu")
    texts, answers = json.loads((bundle / "answers.json").read_text(encoding="utf-8"))
    if model.family == "seq2seq":
        assert model.translate(texts) == answers
        return
    for found, (label, probability) in zip(model.classify(texts), answers, strict=True):
        assert found.label == label
        assert found.probability == pytest.approx(probability, abs=1e-5)
