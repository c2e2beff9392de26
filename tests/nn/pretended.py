"""Training, validation and decoding on a simulated device with separate tensors and Apple's or CUDA's rules."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.builders import classifier, recurrent_seq2seq, seq2seq
from tests.inference.models import params, sources, vocabulary
from tests.kit import TASKS
from tests.training.small import prepare, smoke
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.task import open_task
from transformer.data.vocabulary import read_vocabularies
from transformer.families.classifier.classifier import class_logits, softmax
from transformer.families.classifier.pretrained import architecture
from transformer.families.classifier.torch_classifier import TorchScorer
from transformer.families.language.interface import LanguageConfig
from transformer.families.language.windows import Masking
from transformer.families.seq2seq.decode import translate
from transformer.families.seq2seq.torch_translator import TorchGenerator
from transformer.nn.device import Compute
from transformer.training.batches import pieces_of_like_length
from transformer.training.loop import Fitted, fit
from transformer.training.step import Step

if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this torch has no Python backends with a device of their own (2.13 has)", allow_module_level=True)

from tests.nn.pretend import Deterministic, NoFloat64, PretendTensor, device, pretending

CPU = torch.device("cpu")
SPLITS = ("train", "validation")
OTHERS = [task for task in TASKS if task != "translation"]
ROWS = {"train": 48, "validation": 12, "test": 4}
RECURRENT: dict[str, dict[str, Any]] = {
    "translation": {
        "kind": "recurrent", "cell": "gru", "attention": "luong_general", "local_window": None, "embedding": 8,
        "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "bidirectional": True, "dropout": 0.0, "max_length": 64,
        "teacher_forcing": 1.0,
    },
    "sentiment": {
        "kind": "recurrent", "cell": "lstm", "layers": 1, "embedding": 8, "hidden": 8, "bidirectional": True,
        "dropout": 0.0, "max_length": 64, "pooling": "last",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The encoded store of all tasks."""
    folders = {}
    for task in TASKS:
        folders[task] = tmp_path_factory.mktemp(task)
        prepare(smoke(task, {"download": {"sample_rows": ROWS}}), task, folders[task])
    return folders


def training(task: str, folder: Path, where: torch.device, model: dict[str, Any], **train: Any) -> Any:
    """What the training loop needs from a task, on a device."""
    module: Any = import_module(f"transformer.families.{open_task(task).family.name}.train")
    if "r_drop" in train:
        model = model | {"attention_dropout": 1e-12}  # R-Drop needs some: this drops nothing
    content = smoke(task, {"model": model, "train": {"epochs": 1, "batch_size": 16} | train})
    chosen = stage_params(content, task, module.Params, where=Path("smoke"))
    held = read_vocabularies(folder / "vocab")
    if task == "translation":
        config = module.Seq2SeqConfig(
            model=chosen.model,
            source_size=held["source"].size,
            target_size=held["target"].size,
            source_pad_id=held["source"].pad_id,
            target_pad_id=held["target"].pad_id,
        )
        sides = (module.EncodedPairs(folder / "encoded" / split, config) for split in ("train", "validation"))
        return module.Seq2SeqTraining(*sides, chosen.train, Compute(where, "fp32"), None)
    if task == "language":
        vocabulary = held["text"]
        config = LanguageConfig(
            model=chosen.model, size=vocabulary.size, pad_id=0, mask_id=4, vocabulary_sha256="0" * 64
        )
        masking = Masking(vocabulary, share=0.15, whole_words=False, seed=1)
        sides = (module.EncodedWindows(folder / "encoded" / name, config, masking) for name in SPLITS)
        return module.LanguageTraining(*sides, chosen.train, Compute(where, "fp32"), None)
    config = module.ClassifierConfig(
        model=architecture(chosen.model), size=held["text"].size, pad_id=held["text"].pad_id, classes=2
    )
    sides = (module.EncodedTexts(folder / "encoded" / split, config) for split in ("train", "validation"))
    return module.ClassifierTraining(*sides, chosen.train, Compute(where, "fp32"), None)


def fitted(task: str, folder: Path, where: torch.device, model: dict[str, Any], **train: Any) -> Fitted:
    given = training(task, folder, where, model, **train)
    return fit(given, given.params, given.compute, log_every=3, observer=Observer())


STILL: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.0}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "smoothing": {"label_smoothing": 0.1, "optimizer": "adamw", "averaging": "ema"},
    "R-Drop": {"r_drop": 0.5, "averaging": "last"},
    "tokens": {"batch_unit": "tokens", "batch_size": 300, "accumulation": 2},
}


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("translation", "R-Drop"),
        ("sentiment", "tokens"),
        ("language", "tokens"),
        *(pytest.param(task, kind, marks=pytest.mark.stress) for task in TASKS for kind in ("plain", "smoothing")),
    ],
)
def test_a_whole_training_runs_and_learns_what_a_cpu_does(task: str, kind: str, data: dict[str, Path]) -> None:
    with pretending(NoFloat64(), Deterministic()):
        there = fitted(task, data[task], device(), STILL, **KINDS[kind])
    here = fitted(task, data[task], CPU, STILL, **KINDS[kind])
    assert there.steps == here.steps
    for one, two in zip(there.history.rows, here.history.rows, strict=True):
        assert one == pytest.approx(two, rel=1e-4, abs=1e-5)


@pytest.mark.stress
@pytest.mark.parametrize("task", ["translation", "sentiment"])
def test_a_recurrent_training_runs(task: str, data: dict[str, Path]) -> None:
    with pretending(NoFloat64(), Deterministic()):
        there = fitted(task, data[task], device(), RECURRENT[task])
    here = fitted(task, data[task], CPU, RECURRENT[task])
    assert there.history.rows[-1] == pytest.approx(here.history.rows[-1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("task", ["translation", *(pytest.param(task, marks=pytest.mark.stress) for task in OTHERS)])
def test_dropouts_run(task: str, data: dict[str, Path]) -> None:
    dropped = {"dropout": 0.2, "attention_dropout": 0.2, "activation_dropout": 0.2}
    with pretending(NoFloat64(), Deterministic()):
        assert np.isfinite(fitted(task, data[task], device(), dropped, word_dropout=0.2).metrics["train_loss"])


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        *(("translation", kind) for kind in KINDS),
        ("translation", "SimCut"),
        ("sentiment", "R-Drop"),
        ("language", "plain"),
    ],
)
def test_an_update_does_not_wait_for_the_device(task: str, kind: str, data: dict[str, Path]) -> None:
    with pretending() as pretend:
        settings = {"simcut": 1.0} if kind == "SimCut" else KINDS[kind]
        given = training(task, data[task], device(), STILL, clip=1.0, **settings)
        updates = Step(given, given.params, given.compute, Observer())
        given.model.train()
        for step, rows in enumerate(given.batches(1)[:3], start=1):
            updates([rows], step, 1e-3)
        assert not pretend.waits
        updates.check()
        assert pretend.waits, "this asks for a number"


@pytest.mark.parametrize("task", ["translation", pytest.param("sentiment", marks=pytest.mark.stress)])
def test_a_recurrent_update_waits_for_how_many_rows_each_step_has_and_not_in_each_step(
    task: str, data: dict[str, Path]
) -> None:
    with pretending() as pretend:
        given = training(task, data[task], device(), RECURRENT[task], clip=1.0)
        updates = Step(given, given.params, given.compute, Observer())
        given.model.train()
        for rows in given.batches(1)[:3]:
            pretend.waits.clear()
            updates([rows], 1, 1e-3)
            assert pretend.waits.total() == {"translation": 5, "sentiment": 2}[task], "two per side, one for the loss"


@pytest.mark.parametrize("task", ["translation", *(pytest.param(task, marks=pytest.mark.stress) for task in OTHERS)])
def test_a_batch_of_tokens_takes_no_more_with_its_padding(task: str, data: dict[str, Path]) -> None:
    settings = {"batch_unit": "tokens", "batch_size": 150}
    with pretending():
        given = training(task, data[task], device(), STILL, **settings)
        sizes: list[int] = []
        batches = given.batches(1)
        seen = given.epoch_rows

        def noted(rows: Any, where: torch.device) -> tuple[Tensor, ...]:
            sides: tuple[Tensor, ...] = type(seen).batch(seen, rows, where)
            sizes.append(max(side.numel() for side in sides))
            return sides

        seen.batch = noted
        updates = Step(given, given.params, given.compute, Observer())
        for step, rows in enumerate(batches, start=1):
            updates([rows], step, 1e-3)
        assert len(sizes) > len(batches) > 1
        assert max(sizes) <= 150


SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"method": "beam", "n_best": 3, "no_repeat_ngram": 2},
    "sample": {"method": "sample", "n_best": 3, "top_k": 9, "top_p": 0.9},
    "no repeated n-gram": {"no_repeat_ngram": 2},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("model", [seq2seq, recurrent_seq2seq])
def test_decoding_finds_what_a_cpu_finds(model: Any, settings: str) -> None:
    target, chosen = vocabulary(30), params(max_length=12, **SETTINGS[settings])
    here = translate(TorchGenerator(model().float(), target), sources(), target, chosen, Observer())
    with pretending(NoFloat64(), Deterministic()):
        there = translate(TorchGenerator(model().float().to(device()), target), sources(), target, chosen, Observer())
    for ours, theirs in zip(there, here, strict=True):
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], rel=1e-4)


def test_classifying_finds_what_a_cpu_finds() -> None:
    here = softmax(class_logits(TorchScorer(classifier().float()), sources(), batch_size=3, observer=Observer()))
    with pretending(NoFloat64(), Deterministic()):
        model = classifier().float().to(device())
        there = softmax(class_logits(TorchScorer(model), sources(), batch_size=3, observer=Observer()))
    np.testing.assert_allclose(there, here, atol=1e-5)


def test_the_device_is_apart_and_the_rules_hold() -> None:
    """The properties that the other tests rely on."""
    with pretending(NoFloat64(), Deterministic()) as pretend:
        there = torch.arange(6.0, device=device()).requires_grad_()
        assert isinstance(there, PretendTensor) and there.device == device()
        with pytest.raises(RuntimeError, match="same device"):
            there + torch.ones(6)
        with pytest.raises(TypeError, match="float64"):
            there.double()
        with pytest.raises(TypeError, match="float64"):
            torch.zeros(2, dtype=torch.float64, device=device())
        with pytest.raises(RuntimeError, match="cumsum does not have a deterministic"):
            there.cumsum(0)
        assert not pretend.waits
        for count, ask in enumerate(
            (lambda: there.sum().item(), lambda: bool((there > 1).any()), lambda: there[there > 1], there.tolist), 1
        ):
            ask()
            assert pretend.waits.total() >= count
        there.square().sum().backward()  # type: ignore[no-untyped-call]
        assert there.grad is not None and there.grad.device == device()
        assert there.grad.cpu().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_pieces_hold_every_row_once(data: dict[str, Path]) -> None:
    given = training("translation", data["translation"], CPU, STILL, batch_unit="tokens", batch_size=200)
    rows = given.batches(1)[0]
    assert [piece.tolist() for piece in given.pieces(rows)] == [rows.tolist()], "a CPU computes no padding"
    pieces = pieces_of_like_length(rows, given.train.lengths.max(axis=1), given.params)
    assert len(pieces) > 1
    assert sorted(row for piece in pieces for row in piece.tolist()) == sorted(rows.tolist())
