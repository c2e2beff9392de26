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
from transformer.inference.onnx_layers import quantized, write_model

SIZE = 40
POOLINGS = ("first", "cls", "mean", "max", "attention")
TRANSFORMERS: list[Any] = [
    *({"pooling": pooling} for pooling in POOLINGS),
    {"pooling": "mean", "norm": "pre", "positions": "rotary", "activation": "gelu", "head_dim": 6},
    *(
        pytest.param(
            {"pooling": pooling, "norm": norm, "positions": positions, "head_dim": head_dim}, marks=pytest.mark.stress
        )
        for pooling in POOLINGS
        for norm in ("post", "pre")
        for positions in ("learned", "sinusoidal", "rotary", "none")
        for head_dim in (None, 6)
    ),
]
RECURRENT = [
    {"cell": cell, "bidirectional": both, "layers": layers, "pooling": pooling}
    for cell, both, layers, pooling in [
        ("lstm", True, 2, "last"),
        ("lstm", False, 1, "mean"),
        ("gru", True, 2, "max"),
        ("gru", False, 1, "last"),
    ]
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


def to_onnx(folder: Path, model: ClassifierModel, *, int8: bool = False) -> OnnxScorer:
    graph = classifier_graph(model)
    write_model(folder / "classifier.onnx", quantized(graph) if int8 else graph)
    return OnnxScorer(folder, positions=32, pad_id=0, classes=2, threads=1)


@pytest.mark.parametrize("changes", TRANSFORMERS)
def test_a_transformer(changes: dict[str, Any], tmp_path: Path) -> None:
    model = varied(classifier(**changes))
    expected = TorchScorer(model).logits(batch())
    assert np.ptp(expected[:, 0]) > 0.1, "the texts differ too little to show anything"
    found = to_onnx(tmp_path, model)
    assert found.logits(batch()) == pytest.approx(expected, abs=2e-5)
    assert found.logits(batch()[2:3, :1]) == pytest.approx(expected[2:3], abs=2e-5), "one token, without padding"
    assert isinstance(model, TransformerClassifier)
    write_ctranslate2(tmp_path / "model", model, vocabulary(SIZE), int8=False)
    other = CTranslate2Scorer(tmp_path / "model", size=SIZE, positions=32, pad_id=0, classes=2, threads=1)
    assert other.logits(batch()) == pytest.approx(expected, abs=2e-5)
    assert TorchScorer(model).logits(batch()).tolist() == expected.tolist(), "a conversion changed the model itself"


def test_the_longest_text_has_a_token_in_front(tmp_path: Path) -> None:
    model = varied(classifier(pooling="cls", positions="none"))
    assert isinstance(model, TransformerClassifier)
    ids = np.random.default_rng(0).integers(1, SIZE, size=(1, model.config.model.max_length))
    write_ctranslate2(tmp_path / "model", model, vocabulary(SIZE), int8=False)
    found = CTranslate2Scorer(tmp_path / "model", size=SIZE, positions=32, pad_id=0, classes=2, threads=1)
    assert found.logits(ids) == pytest.approx(TorchScorer(model).logits(ids), abs=2e-5)


@pytest.mark.parametrize("changes", RECURRENT)
def test_a_recurrent_model(changes: dict[str, Any], tmp_path: Path) -> None:
    model = varied(recurrent_classifier(**changes))
    expected = TorchScorer(model).logits(batch())
    assert np.ptp(expected[:, 0]) > 0.1
    assert to_onnx(tmp_path, model).logits(batch()) == pytest.approx(expected, abs=2e-5)


def test_eight_bits_are_as_near_on_every_processor(tmp_path: Path) -> None:
    """Without VNNI instructions, sums of two products of 8 bits overflow: errors were 0.28 to 0.46 of the spread.

    Weights and states rounded to 8 bits make 0.01, with exact sums.
    """
    model = varied(classifier(d_model=64, d_ff=128, heads=2, layers=2, norm="pre", pooling="mean"))
    assert isinstance(model, TransformerClassifier)
    write_ctranslate2(tmp_path / "model", model, vocabulary(SIZE), int8=True)
    found = CTranslate2Scorer(tmp_path / "model", size=SIZE, positions=32, pad_id=0, classes=2, threads=1)
    ids = np.random.default_rng(0).integers(1, SIZE, size=(200, 9))
    exact = TorchScorer(model).logits(ids)
    assert 1e-4 < (found.logits(ids) - exact).std() / exact.std() < 0.1


def test_eight_bits_are_near(tmp_path: Path) -> None:
    for model in (varied(classifier()), varied(recurrent_classifier())):
        found = to_onnx(tmp_path / type(model).__name__, model, int8=True).logits(batch())
        assert found == pytest.approx(TorchScorer(model).logits(batch()), abs=0.5)
