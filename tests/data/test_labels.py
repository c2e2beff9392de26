"""A classifier's own labels, from the files to an answer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

import transformer
from tests.kit import fresh_profile
from tests.stages import Stages
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_rows, read_table
from transformer.families.classifier.classifier import Classifier
from transformer.families.classifier.combinations import Params, check
from transformer.families.classifier.download import label_name, ordered
from transformer.families.classifier.training_params import ClassifierTrainParams, class_weights
from transformer.nn.kernels.cross_entropy import smoothed_cross_entropy

SPLITS = ("train", "validation", "test")
WORDS = {"bad": "dull grey slow", "fine": "plain calm even", "good": "bright quick warm"}


def written(folder: Path, labels: dict[str, list[Any]]) -> Path:
    """A corpus of JSON lines with these labels in turn, by split."""
    folder.mkdir()
    for split, given in labels.items():
        rows = (
            {"label": label, "text": f"{WORDS.get(str(label), str(label))} film {split} {number}"}
            for number, label in enumerate(given)
        )
        (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: Path, **changes: Any) -> Stages:
    """The stages on this corpus; changes: with `__` for the dot."""
    leaves = {name.replace("__", "."): value for name, value in changes.items()}
    source = {"download.source": "files", "download.path": str(corpus), "download.labels": "train"}
    return Stages(tmp_path, "sentiment", monkeypatch, source | leaves)


def labels_of(folder: Path, split: str = "train") -> list[int]:
    """The class numbers that were written."""
    path = folder / "data" / "sentiment" / "corpus" / f"{split}.jsonl"
    return [json.loads(line)["label"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["pos", "neg", "neg"], ["neg", "pos"]),
        ([5, 1, 10], ["1", "5", "10"]),
        ([True, False, True], ["False", "True"]),
        ([2.0, 1.0, 3.0], ["1", "2", "3"]),
        (["2.0", "1.0", "3.0"], ["1", "2", "3"]),
        (["0.5", "1.5", "1.0"], ["0.5", "1", "1.5"]),
        (["schlecht ", "gut", "très bon"], ["gut", "schlecht", "très bon"]),
        (["cafe\u0301", "bar", "caf\u00e9"], ["bar", "caf\u00e9"]),
    ],
)
def test_labels_are_learned_as_they_are_written(
    given: list[Any], names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stages(tmp_path, monkeypatch, written(tmp_path / "given", dict.fromkeys(SPLITS, given)))
    run.run("download")
    assert read_json(tmp_path / "data/sentiment/corpus/labels.json") == names
    assert [names[number] for number in labels_of(tmp_path)] == [label_name(label) for label in given]
    counted = read_json(tmp_path / "data/sentiment/corpus/provenance.json")["labels"]["train"]
    assert counted == {name: [label_name(label) for label in given].count(name) for name in names}


def test_a_listed_order_is_kept_and_the_second_of_two_is_positive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ["real", "fake"]
    corpus = written(tmp_path / "given", dict.fromkeys(SPLITS, both))
    run = stages(tmp_path, monkeypatch, corpus, download__labels=["real", "fake"])
    run.run("download")
    assert labels_of(tmp_path) == [0, 1]


def test_floats_of_parquet_with_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pandas writes a column of numbers in which one is missing."""
    (tmp_path / "given").mkdir()
    for split in SPLITS:
        table = pyarrow.table({"label": [1.0, float("nan"), None, 2.0], "text": ["a", "b", "c", "d"]})
        pyarrow.parquet.write_table(table, tmp_path / "given" / f"{split}.parquet")
    run = stages(tmp_path, monkeypatch, tmp_path / "given")
    with pytest.raises(UserError, match=r"row 2: the label must be 1 or 2, not nan .*row 3: .*not None"):
        run.run("download")
    stages(tmp_path, monkeypatch, tmp_path / "given", download__bad_rows="skip").run("download")
    assert labels_of(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("labels", "chosen", "message"),
    [
        ({"train": ["a", "a"]}, "train", "train has only the label a: a classifier needs at least two"),
        ({"train": [1, 1]}, [0, 1], "every row of train has the label 1: a classifier needs"),
        (
            {"train": ["a", "b"], "validation": ["c"]},
            "train",
            r"validation\.jsonl, line 1: the label must be a or b, not",
        ),
        ({"train": ["a", "b"], "test": ["c"]}, ["a", "b", "c"], "test has rows with the label c, and train has none"),
        ({"train": list(range(129))}, "train", "train has more than 128 different labels, such as 0, 1, 2"),
        ({"train": [None, ""]}, "train", "train has no label"),
        ({"train": ["\ud83d", "a", "b"]}, "train", "line 1: `label` has a lone surrogate, U.D83D"),
        ({"train": ["\0", "a", "b"]}, "train", "line 1: `label` has a NUL character"),
        ({"train": [[1], "a", "b"]}, "train", "line 1: `label` must be a text or a number, not list"),
        ({"train": ["a", "b"]}, "negative", "labels`: must be `train`, a list of labels or a mapping"),
        ({"train": ["neg", "pos"]}, [0, 1], r"0 or 1, not 'neg' \(`labels` may name others\)"),
    ],
)
def test_labels_that_cannot_be_learned_are_one_line(
    labels: dict[str, list[Any]], chosen: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {split: labels.get(split, labels["train"]) for split in SPLITS}
    run = stages(tmp_path, monkeypatch, written(tmp_path / "given", given), download__labels=chosen)
    with pytest.raises(UserError, match=message) as caught:
        run.run("download")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data/sentiment/corpus").exists()


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", None], ["1", 1.0], [str(number) for number in range(129)]])
def test_a_list_that_names_no_classes_is_refused(
    labels: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="must be 2 to 128 different labels"):
        stages(tmp_path, monkeypatch, tmp_path, download__labels=labels).run("download")


def test_weights_of_other_labels_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer.core.params import stage_params
    from transformer.core.task import open_task

    changes = {"download__labels": ["a", "b"], "train__class_weights": {"a": 1.0, "c": 2.0}}
    content = stages(tmp_path, monkeypatch, tmp_path, **changes).content
    with pytest.raises(ValueError, match="exactly the labels a, b"):
        check(open_task("sentiment"), stage_params(content, "sentiment", Params, where=Path("params.yaml")))


@pytest.mark.parametrize(
    ("names", "labels", "first"),
    [
        (("neg", "pos"), "train", 0),
        (("pos", "neg"), {"neg": "bad", "pos": "good"}, 1),
        (("bad", "good"), ["good", "bad"], 1),
        (("spam", "ham"), "train", 1),
        (("positive", "pos"), ["negative", "positive"], None),
        (("1", "2"), [0, 1], None),
        (("1", "2"), [2, 1], 1),
    ],
)
def test_the_names_in_parquet_files_of_datasets_count(
    names: tuple[str, str], labels: Any, first: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set of the Hub, read from its own files. first: what 0 is; None where a name is of no class."""
    import datasets

    features = datasets.Features({"label": datasets.ClassLabel(names=names), "text": datasets.Value("string")})
    for split in SPLITS:
        rows = [{"label": number % 2, "text": f"{split} {number}"} for number in range(6)]
        datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / f"{split}.parquet")
    run = stages(tmp_path, monkeypatch, tmp_path, download__labels=labels)
    if first is None:
        with pytest.raises(UserError, match="the label must be"):
            run.run("download")
        return
    run.run("download")
    assert labels_of(tmp_path, "test") == [first, 1 - first] * 3
    if labels == "train":
        assert read_json(tmp_path / "data/sentiment/corpus/labels.json") == sorted(names)


def test_every_file_has_its_own_names_of_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of splits cast one by one, of which one lacks a class; also of added rows."""
    import datasets

    names = {"train": ["world", "sports", "science"], "validation": ["science", "sports"], "test": ["sports", "world"]}
    names["added/train"] = ["world", "sports", "science"]
    for split, own in names.items():
        features = datasets.Features({"label": datasets.ClassLabel(names=own), "text": datasets.Value("string")})
        rows = [{"label": n % len(own), "text": f"{own[n % len(own)]} {split} {n}"} for n in range(12)]
        path = tmp_path / "given" / f"{split}.parquet" if "/" not in split else tmp_path / f"{split}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(rows, features=features).to_parquet(path)
    changes = {"download__labels": "train", "download__added": str(tmp_path / "added")}
    run = stages(tmp_path, monkeypatch, tmp_path / "given", **changes)
    run.run("download")
    folder = run.folder / "data" / run.task / "corpus"
    labels = read_json(folder / "labels.json")
    assert labels == ["science", "sports", "world"]
    for split in SPLITS:
        stored = [*read_rows(folder / f"{split}.jsonl")]
        assert all(row["text"].startswith(labels[row["label"]]) for row in stored)
    assert sum("added" in row["text"] for row in read_rows(folder / "train.jsonl")) == 12


def test_weights_of_numbers_are_those_of_their_labels() -> None:
    """YAML reads `{1: 4, 2: 1}` with whole numbers."""
    section: dict[str, Any] = fresh_profile("default")["sentiment"]["train"]
    weights = ClassifierTrainParams.model_validate(section | {"class_weights": {1: 4, 2: 1}}).class_weights
    assert weights == {"1": 4, "2": 1}


def test_the_order_of_names() -> None:
    assert ordered(["10", "9", "-1", "2.5"]) == ("-1", "2.5", "9", "10")
    assert ordered(["b", "A", "c", "10"]) == ("10", "A", "b", "c")


def test_weights_name_labels_as_the_labels_do() -> None:
    section = fresh_profile("default")["sentiment"]["train"] | {"class_weights": {1.0: 2, 2: 1, "c": 3}}
    assert ClassifierTrainParams.model_validate(section).class_weights == {"1": 2, "2": 1, "c": 3}


def test_balanced_weights_make_every_class_weigh_the_same() -> None:
    labels = np.array([0] * 6 + [1] * 3 + [2], dtype=np.int8)
    weights = class_weights("balanced", ("a", "b", "c"), labels, torch.device("cpu"))
    assert weights is not None
    weighed = weights.numpy() * np.bincount(labels)
    assert np.allclose(weighed, len(labels) / 3)
    assert class_weights("none", ("a", "b"), labels, torch.device("cpu")) is None
    with pytest.raises(UserError, match="must have exactly the labels a, b, not a"):
        class_weights({"a": 1.0}, ("a", "b"), labels, torch.device("cpu"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_weight_counts_a_row_that_many_times(smoothing: float) -> None:
    torch.manual_seed(1)
    logits, classes = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 2, 0])
    weights = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
    repeated = [row for row, number in enumerate(classes.tolist()) for _ in range(int(weights[number]))]
    total, nll = smoothed_cross_entropy(logits, classes, smoothing, weights)
    expected, _ = smoothed_cross_entropy(logits[repeated], classes[repeated], smoothing)
    assert torch.allclose(total, expected)
    assert torch.allclose(nll, smoothed_cross_entropy(logits, classes, 0.0)[1])


@pytest.mark.stress  # four labels go all the way in tests/system/workflow/test_new_task.py
def test_three_own_labels_and_a_further_test_split_go_from_files_to_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["good", "bad", "fine", "good", "good"]
    splits = dict.fromkeys((*SPLITS, "test_new"), given * 4) | {"train": given * 60}
    changes: dict[str, Any] = {
        "train.epochs": 12,
        "train.learning_rate": 0.01,
        "train.patience": None,
        "train.class_weights": "balanced",
    }
    run = stages(
        tmp_path,
        monkeypatch,
        written(tmp_path / "given", splits),
        **{name.replace(".", "__"): value for name, value in changes.items()},
    )
    run.run("download", "tokenize", "build_vocab", "train", "figures", "evaluate", "export")
    evaluation = read_json(run.reports / "evaluation.json")
    assert {"validation", "test", "test_new"} <= {*evaluation}
    assert evaluation["test_new"]["accuracy"] == 1.0  # each label has words of its own
    assert evaluation["test_new"]["majority_accuracy"] == 0.6
    assert evaluation["test_new"]["balanced_accuracy"] == 1.0
    rows = list(read_table(run.reports / "plots" / "classes.tsv"))
    assert [(row["class"], row["reviews"], row["recall"]) for row in rows] == [
        ("bad", "4", "1.0"),
        ("fine", "4", "1.0"),
        ("good", "12", "1.0"),
    ]
    bundle = tmp_path / "models" / "sentiment" / "bundle"
    assert "Says whether a review is bad, fine or good." in (bundle / "README.md").read_text(encoding="utf-8")
    model = transformer.load(bundle)
    assert isinstance(model, Classifier)
    answers = model.classify(["bright quick warm film", "dull grey slow film"])
    assert [answer.label for answer in answers] == ["good", "bad"]
