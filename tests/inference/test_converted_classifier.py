"""Classifiers in ONNX and CTranslate2 compute what PyTorch does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import classifier, recurrent_classifier
from tests.inference.models import vocabulary
from transformer.data.store import Ids
from transformer.families.classifier.engines import CTranslate2Scorer, OnnxScorer
from transformer.families.classifier.formats import classifier_graph, write_ctranslate2
from transformer.families.classifier.interface import ClassifierModel
from transformer.families.classifier.network import TransformerClassifier
from transformer.families.classifier.torch_classifier import TorchScorer
from transformer.inference.onnx_export import quantized, write_model

SIZE = 40
TRANSFORMERS: list[dict[str, Any]] = [
    {"pooling": "first", "layers": 1},
    {"pooling": "cls", "positions": "none"},
    {"pooling": "max", "norm": "pre", "positions": "sinusoidal", "layers": 1},
    {"pooling": "attention", "layers": 1},
    {"pooling": "mean", "norm": "pre", "positions": "rotary", "activation": "gelu", "head_dim": 6},
]
RECURRENT: list[dict[str, Any]] = [
    {"cell": "lstm", "bidirectional": True, "layers": 2, "pooling": "last"},
    {"cell": "gru", "bidirectional": False, "layers": 1, "pooling": "max"},
]


def varied(model: ClassifierModel) -> ClassifierModel:
    """The same kind of model with larger, uneven weights, biases included."""
    torch.manual_seed(3)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.2)
    return model.float()


def batch() -> Ids:
    """Texts of 1 to 11 tokens, padded."""
    generator, ids = np.random.default_rng(0), np.zeros((5, 11), dtype=np.int64)
    for row, length in zip(ids, (11, 3, 1, 7, 2), strict=True):
        row[:length] = generator.integers(1, SIZE, size=length)
    return ids


def to_onnx(folder: Path, model: ClassifierModel) -> list[OnnxScorer]:
    """The model in 32 and in 8 bits."""
    graph, found = classifier_graph(model), []
    for bits, each in ((32, graph), (8, quantized(graph))):
        write_model(folder / str(bits) / "classifier.onnx", each)
        found.append(OnnxScorer(folder / str(bits), positions=32, pad_id=0, classes=2, threads=1))
    return found


def to_ctranslate2(folder: Path, model: TransformerClassifier, *, int8: bool = False) -> CTranslate2Scorer:
    write_ctranslate2(folder, model, vocabulary(SIZE), int8=int8)
    return CTranslate2Scorer(folder, size=SIZE, positions=32, pad_id=0, classes=2, threads=1)


@pytest.mark.parametrize("changes", [*TRANSFORMERS, *RECURRENT])
def test_logits_are_those_of_pytorch(changes: dict[str, Any], tmp_path: Path) -> None:
    model = varied(recurrent_classifier(**changes) if "cell" in changes else classifier(**changes))
    expected = TorchScorer(model).logits(batch())
    assert np.ptp(expected[:, 0]) > 0.1, "the texts differ too little to show anything"
    exact, rough = to_onnx(tmp_path, model)
    assert exact.logits(batch()) == pytest.approx(expected, abs=2e-5)
    assert exact.logits(batch()[2:3, :1]) == pytest.approx(expected[2:3], abs=2e-5), "one token, without padding"
    assert rough.logits(batch()) == pytest.approx(expected, abs=0.5)
    if isinstance(model, TransformerClassifier):
        other = to_ctranslate2(tmp_path / "model", model)
        assert other.logits(batch()) == pytest.approx(expected, abs=2e-5)
        longest = np.random.default_rng(0).integers(1, SIZE, size=(1, model.config.model.max_length))
        assert other.logits(longest) == pytest.approx(TorchScorer(model).logits(longest), abs=2e-5)
    assert TorchScorer(model).logits(batch()).tolist() == expected.tolist(), "a conversion changed the model itself"


def test_eight_bits_are_as_near_on_every_processor(tmp_path: Path) -> None:
    """Without VNNI instructions, sums of two products of 8 bits overflow: errors were 0.28 to 0.46 of the spread.

    Weights and states rounded to 8 bits make 0.01, with exact sums.
    """
    model = varied(classifier(d_model=64, d_ff=128, heads=2, layers=2, norm="pre", pooling="mean"))
    assert isinstance(model, TransformerClassifier)
    ids = np.random.default_rng(0).integers(1, SIZE, size=(200, 9))
    exact = TorchScorer(model).logits(ids)
    found = to_ctranslate2(tmp_path / "model", model, int8=True).logits(ids)
    assert 1e-4 < (found - exact).std() / exact.std() < 0.1
