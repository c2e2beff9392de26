"""The wide branch: fitted on training texts alone, trained beside, written and read again."""

import os
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformer.families.classifier.data.wide import FittedWide, fit_wide
from transformer.families.classifier.nn.wide import WIDE, WideBranch, read_wide

import transformer
from tests.builders import LAYERS, TRAIN
from tests.stages import Stages
from tests.training.small import ROOT, outputs
from tests.warm import with_warm_commands
from transformer.checkpoint.device import Compute, inference_device
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table
from transformer.core.observer import Observer
from transformer.encoded.store import ColumnWriter, Sequences, write_labels
from transformer.encoded.vocabulary import clip
from transformer.families.classifier import options
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.data.naive_bayes import folds_of_blocks, known_keys, margins, occurrence_matrix
from transformer.families.classifier.decoding.labels import ClassificationParams, Classifier
from transformer.families.classifier.decoding.with_torch import TorchClassifier
from transformer.families.classifier.figures import classify_with_attention, drawings
from transformer.families.classifier.nn.config import ClassifierConfig, ClassifierParams, WideParams
from transformer.families.classifier.nn.ngrams import Occurrences, ngram_keys
from transformer.families.classifier.nn.weights import ClassifierTrainParams
from transformer.families.classifier.train import ClassifierTraining

SIZE = 30
WIDE_TRAIN: dict[str, Any] = {
    "class_weights": "none",
    "wide_strength": 1.0,
    "wide_folds": 4,
    "wide_block": 5,
    "wide_dropout": 0.25,
    "network_loss": 0.3,
}
ON = {"model.wide_ngrams": 3, "model.wide_features": 400}
VECTORS = {"model.wide_vectors": 40}


def texts_in(folder: Path, texts: Sequence[Sequence[int]], labels: Sequence[int], classes: int = 2) -> EncodedTexts:
    ColumnWriter(folder, "text", SIZE).write([Sequences.of([np.array([2, *text, 3]) for text in texts])])
    write_labels(folder, labels)
    params = ClassifierParams(**{**LAYERS, "layers": 1, "pooling": "mean", "max_length": 4})
    return EncodedTexts(folder, ClassifierConfig(model=params, size=SIZE, pad_id=0, classes=classes))


def fitted(train: EncodedTexts, most: int = 1000, vectors: int = 0, weights: Tensor | None = None) -> FittedWide:
    model = WideParams(wide_ngrams=3, wide_features=most, wide_vectors=vectors)
    params = ClassifierTrainParams(**{**TRAIN, **WIDE_TRAIN})
    return fit_wide(train, train, model, params, Observer(), weights=weights)


@pytest.mark.parametrize("vectors", [0, 4])
def test_a_training_text_is_scored_by_a_branch_that_has_not_seen_its_block(vectors: int, tmp_path: Path) -> None:
    """Only the texts of the first block have 7 and 14, so that all the others say nothing about them."""
    labels = [row // 5 % 2 for row in range(40)]
    texts = [[7, 14] if row < 5 else [9, 10, 11 + label, 13] for row, label in enumerate(labels)]
    train = texts_in(tmp_path, texts, labels)
    found = fitted(train, vectors=vectors)
    own = found.branch.logits(list(train.whole()))
    assert (own[:5, 0] - own[:5, 1] > 1).all()
    assert np.abs(found.train[:5].numpy()).max() < 0.3, "the bias alone"
    assert (found.train[5:].argmax(dim=1).numpy() == labels[5:]).all()
    assert found.validation.numpy() == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize(
    ("dropped", "own", "r_drop"), [(0.0, 0.0, 0.0), (0.0, 0.5, 0.0), (1 - 1e-9, 0.0, 0.0), (0.0, 0.5, 1.0)]
)
def test_the_loss_is_of_the_sum_and_of_the_network_alone(
    dropped: float, own: float, r_drop: float, tmp_path: Path
) -> None:
    """Without dropout, so that both passes of R-Drop are the same."""
    labels = [row % 2 for row in range(40)]
    train = texts_in(tmp_path, [[9, 11 + label, row % 5 + 4] for row, label in enumerate(labels)], labels)
    settings = {**TRAIN, **WIDE_TRAIN, "wide_dropout": dropped, "network_loss": own, "r_drop": r_drop}
    compute = Compute(torch.device("cpu"), "fp32", repeatable=True)
    training = ClassifierTraining(train, train, ClassifierTrainParams(**settings), compute, None)
    training.wide = fitted(train)
    rows = np.array([3, 8, 21])
    ids, answers = train.batch(rows, compute.device)
    network = training.model(ids)
    beside = network if dropped else network + training.wide.train[rows]
    expected = F.cross_entropy(beside, answers, reduction="sum")
    loss = training.loss(rows)
    assert loss.nll.item() == pytest.approx(expected.item(), rel=1e-5)
    expected = expected + own * F.cross_entropy(network, answers, reduction="sum")
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-5)
    whole = training.model(train.batch(np.arange(40), compute.device)[0]) + training.wide.validation
    assert training.validate()["validation_loss"] == pytest.approx(
        F.cross_entropy(whole, torch.tensor(labels)).item(), rel=1e-5
    )


def test_blocks_stay_together_and_labels_are_spread() -> None:
    labels = np.repeat([0, 1], 60)
    folds = np.array(list(folds_of_blocks(labels, 4, 5, seed=1)))
    assert (folds.sum(axis=0) == 1).all()
    assert all(len({*fold.reshape(-1, 5).sum(axis=1)} - {0, 5}) == 0 for fold in folds)
    assert [int(labels[fold].sum()) for fold in folds] == [15] * 4
    again = np.array(list(folds_of_blocks(labels, 4, 5, seed=1)))
    assert (folds == again).all()
    assert (folds != np.array(list(folds_of_blocks(labels, 4, 5, seed=2)))).any()


def test_equal_texts_are_in_one_fold() -> None:
    """Else the texts that a fold's regression has not seen would have been seen."""
    labels, texts = np.repeat([0, 1], 60), [np.array([number % 40]) for number in range(120)]
    folds = np.array(list(folds_of_blocks(labels, 4, 1, 1, texts)))
    assert (folds.sum(axis=0) == 1).all() and all(fold.sum() == 30 for fold in folds)
    assert (folds.reshape(4, 3, 40) == folds.reshape(4, 3, 40)[:, :1]).all()
    apart = [np.array([number]) for number in range(120)]
    plain = np.array(list(folds_of_blocks(labels, 4, 1, 1)))
    assert (np.array(list(folds_of_blocks(labels, 4, 1, 1, apart))) == plain).all()


def test_a_single_block_is_refused() -> None:
    """No fold would have others to learn from: all would be scored 0."""
    with pytest.raises(UserError, match=r"^train.wide_block is 120, but there are 120 texts: lower it"):
        folds_of_blocks(np.zeros(120), 4, 120, seed=1)


@pytest.mark.parametrize("vectors", [0, 4])
def test_weights_of_classes_count_texts_as_often(vectors: int, tmp_path: Path) -> None:
    """The texts say nothing, and one of five is of class 1: weighted four times, it is as probable as class 0."""
    labels = [int(row % 5 == 4) for row in range(40)]
    train = texts_in(tmp_path, [[9, 10 + row % 2, 13] for row in range(40)], labels)
    alone, weighted = (fitted(train, vectors=vectors, weights=weights) for weights in (None, torch.tensor([1.0, 4.0])))
    assert (alone.validation.argmax(dim=1) == 0).all()
    gaps = weighted.validation[:, 1] - weighted.validation[:, 0]
    assert gaps.abs().max() < 0.2
    assert (weighted.train[:, 1] - weighted.train[:, 0]).abs().max() < 0.5


def test_the_most_frequent_ngrams_are_kept() -> None:
    texts = [np.array([2, 5, *([6] if row < 3 else []), *([8] if row < 2 else [9 + row]), 3]) for row in range(6)]
    found = Occurrences.of(texts, SIZE, 1)
    assert known_keys(found).tolist() == [5, 6, 8]
    assert known_keys(found, 2).tolist() == [5, 6]


def test_many_classes_and_one_that_no_text_has() -> None:
    labels = np.array([0, 1, 2] * 20, dtype=np.int8)
    texts = [np.array([2, 5 + label, 8, 3]) for label in labels]
    found = Occurrences.of(texts, SIZE, 2)
    keys = known_keys(found)
    weights, bias = margins(occurrence_matrix(found, keys), labels, 4, 1.0)
    branch = WideBranch(keys, weights, bias, size=SIZE, longest=2)
    assert (branch.logits(texts).argmax(axis=1) == labels).all()
    assert bias[3] < -3 and not weights[:, 3].any()
    (best,) = branch.heaviest(1, 1)
    assert 6 in best.ids
    for number in range(4):
        shown = [each.weights[number] for each in branch.heaviest(number, 5)]
        assert shown == sorted(weights[:, number], reverse=True)[:5], "what adds most to its logit"


def test_contributions_and_bias_are_the_logits() -> None:
    generator = np.random.default_rng(0)
    texts = [np.array([2, *generator.integers(4, 9, 12), 3]) for _ in range(3)]
    keys = np.unique(np.concatenate([ngram_keys(text, SIZE, 3) for text in texts[:2]]))
    branch = WideBranch(keys, generator.normal(size=(len(keys), 2)), np.array([0.5, -0.5]), size=SIZE, longest=3)
    sums = [np.sum([each.weights for each in branch.contributions(text)], axis=0) + branch.bias for text in texts]
    assert branch.logits(texts) == pytest.approx(np.array(sums))
    assert branch.logits([]).shape == (0, 2)
    assert branch.logits([np.array([2, 3])]).tolist() == [[0.5, -0.5]]


def test_a_branch_is_read_as_it_was_written(tmp_path: Path) -> None:
    branch = WideBranch(np.array([4, 70]), np.array([[1.0, -1.0], [0.5, 2.0]]), np.zeros(2), size=SIZE, longest=2)
    for name in ("one", "two"):
        branch.save(tmp_path / name)
    assert (tmp_path / "one" / WIDE).read_bytes() == (tmp_path / "two" / WIDE).read_bytes()
    found = read_wide(tmp_path / "one", longest=2, size=SIZE, classes=2)
    assert found is not None
    text = [np.array([2, 4, 9, 3])]
    assert found.logits(text).tolist() == branch.logits(text).tolist()
    assert read_wide(tmp_path / "nowhere", longest=0, size=SIZE, classes=2) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"", "cannot be read"), (b"PK\x03\x04 broken", "cannot be read"), ("other", "another")],
)
def test_a_broken_branch_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    branch = WideBranch(np.array([4]), np.ones((1, 2)), np.zeros(2), size=SIZE, longest=2)
    branch.save(tmp_path)
    if content is None:
        (tmp_path / WIDE).unlink()
    elif isinstance(content, bytes):
        (tmp_path / WIDE).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_wide(tmp_path, longest=3 if content == "other" else 2, size=SIZE, classes=2)


LONG = "The film is a triumph, and the cast shines. " * 3
"""More tokens than the model has positions."""


@pytest.fixture(scope="module", params=[{}, VECTORS], ids=["ngrams", "vectors"])
def stages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        found = Stages(
            tmp_path_factory.mktemp("wide"),
            "sentiment",
            patch,
            ON | request.param | {"model.max_length": 12, "figures.sentences": [LONG]},
        )
        found.content["sentiment"]["convert"] |= {"formats": ["ctranslate2", "onnx"], "int8": False}
        found.run("download", "tokenize", "build_vocab", "train", "evaluate", "export", "convert")
        yield found


def test_the_model_that_was_validated_is_the_one_that_answers(stages: Stages) -> None:
    """In training, beside precomputed logits; in evaluation, from the bundle's files; texts are longer than 12."""
    figures = read_json(stages.reports / "evaluation.json")["validation"]
    training = read_json(stages.reports / "training.json")
    assert figures["accuracy"] == pytest.approx(training["validation_accuracy"], abs=1e-6)
    assert figures["loss"] == pytest.approx(training["validation_loss"], abs=1e-4)
    assert figures["accuracy_minus_network"] == pytest.approx(
        figures["accuracy"] - figures["network_accuracy"], abs=1e-6
    )
    said = next(line for line in stages.observer.lines if line.startswith("wide branch: 400 n-grams"))
    assert f"{100 * figures['wide_accuracy']:.1f} % on validation" in said
    with np.load(stages.folder / "models" / "sentiment" / "trained" / WIDE) as file:
        slopes = [np.abs(file[name]).max() for name in file.files if name == "vector_slopes"]
    assert not slopes or slopes[0] > 1e-3, "or no engine would have anything to add"
    assert read_json(stages.folder / "models/sentiment/trained/config.json")["model"].get("wide_vectors", 0) == (
        VECTORS["model.wide_vectors"] if slopes else 0
    )
    assert (stages.reports / "tables" / "ngrams.tsv").read_text().count("\n") == 41
    assert read_json(stages.reports / "conversion.json").keys() == {"ctranslate2", "onnx"}


def test_training_it_again_gives_the_same_bytes_and_off_leaves_nothing_behind(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stages.folder)
    trained = stages.folder / "models" / "sentiment" / "trained"
    first = outputs(trained)
    stages.run("train")
    assert outputs(trained) == first
    other = Stages(stages.folder, "sentiment", monkeypatch, {"model.max_length": 12})
    other.run("train")
    found = read_json(trained / "config.json")["model"]
    assert not (trained / WIDE).exists()
    assert not any("wide" in leaf for leaf in found), "what was not there before"
    for name, content in first.items():
        (trained / name).write_bytes(content)


def test_a_text_longer_than_the_models_positions_is_drawn(stages: Stages) -> None:
    stages.run("figures")
    assert any(path.name.startswith("encoder_attention_1") for path in (stages.reports / "figures").iterdir())


def exported(stages: Stages) -> TorchClassifier:
    bundle = stages.folder / "models" / "sentiment" / "bundle"
    opened = bundle / "model", bundle / "vocab", bundle, ClassificationParams(batch_size=8)
    return TorchClassifier(*opened, inference_device("cpu"), ("negative", "positive"))


def test_a_figures_answer_is_for_the_whole_text(stages: Stages) -> None:
    """And not for the tokens that fit on its axes."""
    classifier, text = exported(stages), "The film is a triumph, and the cast shines."
    (answer,) = classifier.classify([text])
    for longest, cut in (
        (5, True),
        (500, len(classifier.encode([text])[0]) > classifier.model.config.model.max_length),
    ):
        found = classify_with_attention(classifier, text, longest=longest)
        titles = {each.title for each in drawings(found, "mean", layers="last", unit="review")}
        assert found.answer == answer and found.cut == cut
        whole = clip(classifier.encode([text])[0], classifier.model.config.model.max_length)
        assert {weights.shape[-1] for weights in found.maps.values()} == {len(whole)}, "the pass that gave the answer"
        for drawing in drawings(found, "mean", layers="last", unit="review"):
            assert {panel.shape[-1] for panel in drawing.panels.values()} == {len(found.tokens)}
        said = f"({answer.label}, {answer.probability:.2f}" + f"; the first {found.shown} tokens are shown" * cut
        assert found.shown == len([token for token in found.tokens if token not in ("[CLS]", "[SEP]")])
        assert titles and all(title.endswith(said + ")") for title in titles)


def test_an_ngram_is_a_reason(stages: Stages) -> None:
    classifier = exported(stages)
    text = "The film is a triumph, and the cast shines."
    ((answer, _),) = classifier.classify([text])
    reasons = classifier.reasons(text, answer, 5)
    assert len(reasons) == 5 and classifier.reasons(text, answer, 0) == []
    sizes = [abs(lead) for _, lead in reasons]
    assert sizes == sorted(sizes, reverse=True)
    other = next(name for name in classifier.classes if name != answer)
    assert classifier.reasons(text, other, 1) == [(reasons[0][0], -reasons[0][1])]
    assert classifier.wide is not None
    every = classifier.reasons(text, "positive", 10_000)
    logits = classifier.wide.logits(classifier.encode([text]))[0] - classifier.wide.bias
    assert sum(lead for _, lead in every) == pytest.approx(logits[1] - logits[0], abs=1e-5)


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_every_engine_adds_the_same_ngrams(engine: str, stages: Stages, tmp_path: Path) -> None:
    """From a folder of its own; the text of its example is longer than the network reads."""
    models = stages.folder / "models" / "sentiment"
    folder = tmp_path / engine
    shutil.copytree(models / "converted" / engine, folder)
    texts = ["The film is a triumph, and the cast shines.", "Nobody would call it dull or weak. " * 9, "", "hardly"]
    exported, converted = transformer.load(models / "bundle"), transformer.load(folder)
    assert isinstance(exported, Classifier) and isinstance(converted, Classifier)
    expected = exported.probabilities(exported.encode(texts), Observer())
    assert converted.probabilities(converted.encode(texts), Observer()) == pytest.approx(expected, abs=1e-4)
    assert converted.reasons(texts[0], "positive", 3) == exported.reasons(texts[0], "positive", 3)
    warm = with_warm_commands(os.environ | {"PYTHONPATH": str(ROOT)})
    run = subprocess.run(["python", "example.py"], cwd=folder, env=warm, check=True, capture_output=True, text=True)
    (first, *_) = read_table(stages.reports / "predictions.tsv")
    label, probability = run.stdout.split()
    assert label == first["prediction"]
    assert float(probability) == pytest.approx(float(first["probability"]), abs=1e-4)
    (folder / "model" / WIDE).unlink()
    with pytest.raises(UserError, match=r"wide\.npz cannot be read .* run `dvc repro` to make it again"):
        transformer.load(folder)


def test_the_command_says_which_ngrams_weigh(stages: Stages) -> None:
    model = transformer.load(stages.folder / "models" / "sentiment" / "bundle")
    assert isinstance(model, Classifier)
    asked = Namespace(ngrams=2, model="bundle")
    answer, *reasons = options.answering(model, asked)(["The film is a triumph."])
    assert answer.endswith("The film is a triumph.")
    assert reasons == [
        f"\t{lead:+.4f}\t{name}" for name, lead in model.reasons("The film is a triumph.", answer.split("\t")[0], 2)
    ]
    assert len(options.answering(model, Namespace(ngrams=0, model="bundle"))(["The film is a triumph."])) == 1
    model.wide = None
    for wrong, message in ((1, "has no wide branch"), (-1, "must be 0 or more")):
        with pytest.raises(UserError, match=message):
            options.answering(model, Namespace(ngrams=wrong, model="bundle"))
