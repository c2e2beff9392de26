"""The classifier of n-grams: fitted on training texts, written and read again, through all stages."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from threadpoolctl import threadpool_info, threadpool_limits

import transformer
from tests.builders import NGRAMS
from tests.stages import Stages
from transformer.commands.ask import show_attention
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table
from transformer.families.classifier import options
from transformer.families.classifier.interface import ClassifierConfig
from transformer.families.classifier.ngram_training import Fitted, fit_ngrams, known_keys, vectors_of
from transformer.families.classifier.ngrams import Ids, NgramModel, Occurrences, lead_of
from transformer.families.classifier.torch_classifier import NgramClassifier
from transformer.nn.trained import WEIGHTS

SIZE = 30
MODEL = {**NGRAMS.model_dump(), "pretrained": "data/local/none", "features": 400, "vector_strength": 0.1}
REVIEW = "The film is a triumph, and the cast shines."


def text(*ids: int) -> Ids:
    return np.array([2, *ids, 3])


def fitted(texts: Sequence[Ids], labels: Sequence[int], *, vectors: int = 0, **more: Any) -> Fitted:
    model = NGRAMS.model_copy(update={"vectors": vectors})
    config = ClassifierConfig(model=model, size=SIZE, pad_id=0, classes=max(2, *(label + 1 for label in labels)))
    return fit_ngrams(config, texts, np.array(labels, dtype=np.int8), **more)


def told(classes: int = 2) -> tuple[list[Ids], list[int]]:
    """80 texts with a word for each label; 20 is in two texts of either of two."""
    labels = [row // 5 % classes for row in range(80)]
    rare = (0, 5, 40, 45)
    return [text(9, 10 + label, 13 + row % 4, *[20] * (row in rare)) for row, label in enumerate(labels)], labels


@pytest.mark.parametrize("vectors", [0, 7])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_ngrams_of_a_label_add_to_its_logit(classes: int, vectors: int) -> None:
    texts, labels = told(classes)
    found = fitted(texts, labels, vectors=vectors)
    logits = found.model.logits(texts)
    assert (logits.argmax(axis=1) == labels).all() and (found.logits.argmax(axis=1) == labels).all()
    if not vectors:
        assert found.logits == pytest.approx(logits, abs=1e-4)
    for number in range(classes):
        (best,) = found.model.heaviest(number, 1)
        assert 10 + number in best.ids, "what adds most to its logit"
    for ids, row in zip(texts[:3], logits, strict=False):
        parts = sum((each.weights for each in found.model.contributions(ids)), np.zeros(classes))
        assert row - found.model.bias == pytest.approx(parts, abs=1e-4)


def test_the_most_frequent_ngrams_are_kept() -> None:
    texts = [text(5, *([6] if row < 3 else []), *([8] if row < 2 else [9 + row])) for row in range(6)]
    found = Occurrences.of(texts, SIZE, 1)
    assert known_keys(found, 9).tolist() == [5, 6, 8]
    assert known_keys(found, 2).tolist() == [5, 6]


@pytest.mark.parametrize("vectors", [0, 4])
def test_weights_of_classes_count_texts_as_often(vectors: int) -> None:
    """The texts say nothing, and one of five is of class 1: weighted four times, it is as probable as class 0."""
    labels = [int(row % 5 == 4) for row in range(40)]
    texts = [text(9, 10 + row % 2, 13) for row in range(40)]
    plain, weighted = (
        fitted(texts, labels, vectors=vectors, factors=factors).model.logits(texts)
        for factors in (None, np.where(labels, 4.0, 1.0))
    )
    assert (plain.argmax(axis=1) == 0).all()
    assert np.abs(weighted[:, 1] - weighted[:, 0]).max() < 0.5


def test_texts_without_a_label_say_what_a_word_is_for() -> None:
    """Among them 20 is beside 11, which is for label 1; an n-gram of theirs alone, such as 25, has no weight."""
    texts, labels = told()
    more = [text(11, 20, 13 + row % 4, 25) if row % 2 else text(10, 13 + row % 4) for row in range(120)]
    models = [fitted(texts, labels, vectors=3, unlabelled=others).model for others in (None, more)]
    alone, beside = (lead_of(model.logits([text(20)])[0], 1) for model in models)
    assert beside > alone + 0.2
    assert models[0].keys.tolist() == models[1].keys.tolist() and 25 not in models[1].keys


@pytest.fixture(scope="module", params=[0, 40], ids=["ngrams", "vectors"])
def stages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        found = Stages(tmp_path_factory.mktemp("ngrams"), "sentiment", patch, {})
        found.content["sentiment"]["model"] = MODEL | {"vectors": request.param}
        found.content["sentiment"]["convert"]["formats"] = ["ctranslate2", "onnx"]
        found.run("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export", "convert")
        yield found


def test_the_model_that_was_validated_is_the_one_that_answers(stages: Stages) -> None:
    figures = read_json(stages.reports / "evaluation.json")["validation"]
    training = read_json(stages.reports / "training.json")
    assert figures["accuracy"] == pytest.approx(training["validation_accuracy"], abs=1e-6)
    assert figures["loss"] == pytest.approx(training["validation_loss"], abs=1e-4)
    (row,) = read_table(stages.reports / "history.tsv")
    assert float(row["validation_loss"]) == training["validation_loss"]
    assert training["ngrams"] == 400 and training["parameters"] >= 802
    assert (stages.reports / "tables" / "ngrams.tsv").read_text().count("\n") == 41


def test_what_an_ngram_model_has_not_is_said_in_a_line(stages: Stages) -> None:
    said = "\n".join(stages.observer.lines)
    for name in ("ctranslate2", "onnx"):
        assert f"not converted to {name}: a model of n-grams (model.kind `ngrams`) has no network" in said
        assert "no network" in read_json(stages.reports / "conversion.json")[name]["refused"]
    assert "has no attention to draw" in said and not [*(stages.reports / "figures").iterdir()]
    asked = Namespace(output=None, model="bundle", text=REVIEW, layers="last", map=None)
    with pytest.raises(UserError, match="the model in bundle has no attention"):
        show_attention(lambda: bundle(stages), asked)


def bundle(stages: Stages) -> NgramClassifier:
    found = transformer.load(stages.folder / "models/sentiment/bundle")
    assert isinstance(found, NgramClassifier)
    return found


def test_an_ngram_is_a_reason(stages: Stages) -> None:
    classifier = bundle(stages)
    ((label, _),) = classifier.classify([REVIEW])
    reasons = classifier.reasons(REVIEW, label, 5)
    sizes = [abs(lead) for _, lead in reasons]
    assert len(reasons) == 5 and sizes == sorted(sizes, reverse=True)
    every = classifier.reasons(REVIEW, "positive", 10_000)
    logits = classifier.model.logits(classifier.encode([REVIEW]))[0] - classifier.model.bias
    assert sum(lead for _, lead in every) == pytest.approx(logits[1] - logits[0], abs=1e-5)
    (found,) = options.ClassifierCommands().answering(classifier, Namespace(ngrams=5, model="bundle"))([REVIEW])
    answer, *lines = found.lines
    assert answer.endswith(REVIEW)
    assert lines == [f"\t{lead:+.4f}\t{name}" for name, lead in reasons]
    with pytest.raises(UserError, match="must be 0 or more"):
        options.ClassifierCommands().answering(classifier, Namespace(ngrams=-1, model="bundle"))


@pytest.mark.parametrize("change", ["missing", "bias", "more"])
def test_a_file_of_another_model_is_refused(change: str, stages: Stages, tmp_path: Path) -> None:
    model = bundle(stages).model
    trained = stages.folder / "models/sentiment/bundle/model" / WEIGHTS
    before, state = trained.read_bytes(), load_file(trained)
    if change == "missing":
        trained.unlink()
    elif change == "more":
        save_file(state | {"further": state["bias"]}, trained)
    else:
        save_file(state | {change: state[change][1:]}, trained)
    with pytest.raises(UserError, match=r"model\.safetensors.* run `dvc repro`"):
        bundle(stages)
    trained.write_bytes(before)
    lacking = {name: values for name, values in model.state().items() if name != "weights"}
    with pytest.raises(RuntimeError, match="it lacks 'weights'"):
        NgramModel.from_state(model.config, lacking)


def test_blas_has_the_cores_of_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not all of a machine: their number changes the last bits. Texts without a label are read as well."""
    seen = []

    def found(matrices: Any, *arguments: Any) -> Any:
        threads = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
        seen.append((threads, [matrix.shape[0] for matrix in matrices]))
        return vectors_of(matrices, *arguments)

    monkeypatch.setattr("transformer.families.classifier.ngram_training.vectors_of", found)
    stages = Stages(tmp_path, "sentiment", monkeypatch, {})
    stages.content["sentiment"]["model"] = MODEL | {"vectors": 4}
    stages.content["hardware"]["threads"] = 1
    stages.run("download", "tokenize", "build_vocab")
    (tmp_path / "data/sentiment/encoded/test").rename(tmp_path / "data/sentiment/encoded/unsupervised")
    with threadpool_limits(2, user_api="blas"):
        stages.run("train")
    assert seen == [({1}, [200, 20])]
