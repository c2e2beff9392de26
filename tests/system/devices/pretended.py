"""Training, validation and decoding on a simulated device with separate tensors and Apple's or CUDA's rules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.builders import (
    SEQ2SEQ_TRAIN,
    TRAIN,
    classifier,
    recurrent_classifier,
    recurrent_seq2seq,
    seq2seq,
)
from tests.inference.models import params, sources, vocabulary
from transformer.core.observer import Observer
from transformer.data.store import ColumnWriter, Sequences, write_labels
from transformer.families.classifier.classifier import class_logits, softmax
from transformer.families.classifier.texts import EncodedTexts
from transformer.families.classifier.torch_classifier import TorchScorer
from transformer.families.classifier.train import ClassifierTraining
from transformer.families.classifier.training_params import ClassifierTrainParams
from transformer.families.seq2seq.decode import translate
from transformer.families.seq2seq.pairs import EncodedPairs
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.families.seq2seq.train import Seq2SeqTraining
from transformer.families.seq2seq.training_params import Seq2SeqTrainParams
from transformer.nn.device import Compute
from transformer.training.loop import Fitted, fit
from transformer.training.step import Step

if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this torch has no Python backends with a device of their own (2.13 has)", allow_module_level=True)

from tests.system.devices.pretend import device, pretending

CPU = torch.device("cpu")
MODELS: dict[str, Any] = {
    "pairs": seq2seq,
    "pairs, recurrent": recurrent_seq2seq,
    "texts": classifier,
    "texts, recurrent": recurrent_classifier,
}
SMOOTHING: dict[str, Any] = {"label_smoothing": 0.1, "optimizer": "adamw", "averaging": "ema"}
R_DROP: dict[str, Any] = {"r_drop": 0.5, "averaging": "last"}
TOKENS: dict[str, Any] = {"batch_unit": "tokens", "batch_size": 60, "accumulation": 2}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 random texts of 30 words, with labels and in pairs."""
    folder, generator = tmp_path_factory.mktemp("store"), np.random.default_rng(1)
    for name in ("source", "target", "text"):
        rows = [np.array([2, *generator.integers(5, 30, length), 3]) for length in generator.integers(2, 15, 48)]
        ColumnWriter(folder, name, 30).write([Sequences.of(rows)])
    write_labels(folder, generator.integers(0, 2, 48).tolist())
    return folder


def training(kind: str, folder: Path, where: torch.device, *, dropout: float = 0.0, **train: Any) -> Any:
    """What the training loop needs, on a device."""
    config, compute = MODELS[kind](dropout=dropout).config, Compute(where, "fp32")
    settings = TRAIN | {"epochs": 1, "batch_size": 16, "learning_rate": 0.01} | train
    if kind.startswith("pairs"):
        pairs = EncodedPairs(folder, config)
        return Seq2SeqTraining(pairs, pairs, Seq2SeqTrainParams(**SEQ2SEQ_TRAIN | settings), compute, None)
    texts = EncodedTexts(folder, config)
    return ClassifierTraining(texts, texts, ClassifierTrainParams(class_weights="none", **settings), compute, None)


def fitted(kind: str, folder: Path, where: torch.device, **train: Any) -> Fitted:
    given = training(kind, folder, where, **train)
    return fit(given, given.params, given.compute, log_every=3, observer=Observer())


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("pairs", SMOOTHING),
        ("pairs", R_DROP),
        ("pairs, recurrent", TOKENS),
        ("texts", TOKENS),
        ("texts, recurrent", SMOOTHING),
    ],
)
def test_a_whole_training_runs_and_learns_what_a_cpu_does(kind: str, settings: dict[str, Any], store: Path) -> None:
    with pretending():
        there = fitted(kind, store, device(), **settings)
        dropped = fitted(kind, store, device(), dropout=0.2, **settings)
    here = fitted(kind, store, CPU, **settings)
    assert there.steps == here.steps
    assert there.history.rows[0] == pytest.approx(here.history.rows[0], rel=1e-4, abs=1e-5)
    assert np.isfinite(dropped.metrics["train_loss"])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *(("pairs", settings) for settings in ({}, SMOOTHING, TOKENS, R_DROP, {"simcut": 1.0})),
        ("pairs, recurrent", {}),
        ("texts", R_DROP),
        ("texts, recurrent", {}),
    ],
)
def test_an_update_does_not_wait_for_the_device(kind: str, settings: dict[str, Any], store: Path) -> None:
    """A recurrent one does for how many rows each step has: twice per side, and once for the loss of pairs."""
    waits = {"pairs, recurrent": 5, "texts, recurrent": 2}.get(kind, 0)
    with pretending() as pretend:
        given = training(kind, store, device(), clip=1.0, **settings)
        updates = Step(given, given.params, given.compute, Observer())
        given.model.train()
        for step, rows in enumerate(given.batches(1)[:3], start=1):
            pretend.waits.clear()
            updates([rows], step, 1e-3)
            assert pretend.waits.total() == waits * len(given.pieces(rows))
        updates.check()
        assert pretend.waits, "this asks for a number"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"no_repeat_ngram": 2},
        {"method": "beam", "n_best": 3, "no_repeat_ngram": 2},
        {"method": "sample", "n_best": 3, "top_k": 9, "top_p": 0.9},
    ],
)
@pytest.mark.parametrize("model", [seq2seq, recurrent_seq2seq])
def test_decoding_finds_what_a_cpu_finds(model: Any, settings: dict[str, Any]) -> None:
    target, chosen = vocabulary(30), params(max_length=12, **settings)
    here = translate(TorchGenerator(model().float(), target), sources(), target, chosen, Observer())
    with pretending():
        there = translate(TorchGenerator(model().float().to(device()), target), sources(), target, chosen, Observer())
    for ours, theirs in zip(there, here, strict=True):
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], rel=1e-4)


def test_classifying_finds_what_a_cpu_finds() -> None:
    here = softmax(class_logits(TorchScorer(classifier().float()), sources(), batch_size=3, observer=Observer()))
    with pretending():
        model = classifier().float().to(device())
        there = softmax(class_logits(TorchScorer(model), sources(), batch_size=3, observer=Observer()))
    np.testing.assert_allclose(there, here, atol=1e-5)
