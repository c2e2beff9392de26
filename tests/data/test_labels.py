"""A classifier's labels: the corpus's own, or those that the user names, and what they weigh."""

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from pydantic import ValidationError

from tests.data.cases import judge, params, provenance, splits, stored
from tests.kit import fresh_profile
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.params import stage_params
from transformer.core.task import LABELS, open_task, with_labels
from transformer.families.classifier import combinations
from transformer.families.classifier.download import Params, label_name
from transformer.families.classifier.training_params import class_weights
from transformer.nn.kernels.cross_entropy import smoothed_cross_entropy

SPLITS = ("train", "validation", "test")


def downloaded(tmp_path: Path, given: dict[str, list[Any]], labels: Any = "train", **changes: Any) -> Path:
    """The corpus of rows with these labels, by split; of splits that are not named, as of train."""
    rows = {
        split: [{"label": label, "text": f"text {number} of {split}"} for number, label in enumerate(each)]
        for split, each in (dict.fromkeys(SPLITS, given["train"]) | given).items()
    }
    return judge(tmp_path, path=splits(tmp_path / "in", **rows), labels=labels, **changes)


def classes(corpus: Path) -> tuple[str, ...]:
    """The names that later stages show."""
    return with_labels(open_task("sentiment"), corpus).classes


def labels_of(corpus: Path, split: str = "train") -> list[str]:
    """The names of the rows' labels."""
    return [classes(corpus)[row["label"]] for row in stored(corpus, split)]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["pos", "neg", "neg"], ["neg", "pos"]),
        (["NA", "null", "EU"], ["EU", "NA", "null"]),
        ([5, 1, 10, -1], ["-1", "1", "5", "10"]),
        ([1, 0], ["0", "1"]),  # not the classes that the task declares: 0 may be spam as well as negative
        ([2.0, 1.0, 3.0], ["1", "2", "3"]),
        (["0.5", "1.5", "1.0"], ["0.5", "1", "1.5"]),
        (["می\u200cخواهم", "میخواهم"], ["میخواهم", "می\u200cخواهم"]),  # a joiner that shapes its letters
        (["pos", "pos ", "\ufeffpos", "pos\u200b", "p\u00ados", "pos\x7f", "other"], ["other", "pos"]),
        (["café", "cafe\u0301", "cafe\u200b\u0301", "other"], ["café", "other"]),
        (["👨\u200d👩", "👨\u200d👩\ufe0f", "other"], ["other", "👨\u200d👩"]),
    ],
)
def test_labels_are_learned_as_they_are_written(given: list[Any], names: list[str], tmp_path: Path) -> None:
    corpus = downloaded(tmp_path, {"train": given})
    assert classes(corpus) == tuple(names)
    assert labels_of(corpus) == [label_name(label) for label in given]
    assert provenance(corpus)["labels"]["train"] == {name: labels_of(corpus).count(name) for name in names}


@pytest.mark.parametrize(
    ("given", "labels", "names", "found"),
    [
        (["real", "fake"], ["real", "fake"], ("real", "fake"), ["real", "fake"]),
        ([1, 0], {0: "negative", 1: "positive"}, ("negative", "positive"), ["positive", "negative"]),
        (["neg", "pos", 0.0, "1"], {"neg": "no", "pos": "yes", 0: "no", 1: "yes"}, ("no", "yes"), ["no", "yes"] * 2),
    ],
)
def test_a_list_orders_labels_and_a_mapping_names_and_joins_them(
    given: list[Any], labels: Any, names: tuple[str, ...], found: list[str], tmp_path: Path
) -> None:
    """The second of two is the positive class."""
    corpus = downloaded(tmp_path, {"train": given}, labels)
    assert classes(corpus) == names
    assert labels_of(corpus) == found


@pytest.mark.parametrize(
    ("given", "chosen", "message"),
    [
        ({"train": ["a", "a"]}, "train", "train has only the label a: a classifier needs at least two"),
        ({"train": ["a", "b"], "validation": ["c"]}, "train", r"validation\.jsonl, line 1: the label must be a or b"),
        ({"train": ["a", "b"], "test": ["c"]}, ["a", "b", "c"], "test has rows with the label c, and train has none"),
        ({"train": list(range(129))}, "train", "train has more than 128 different labels, such as 0, 1, 2"),
        ({"train": [None, ""]}, "train", "train has no label"),
        ({"train": [[1], "a", "b"]}, "train", "line 1: `label` must be a text or a number, not list"),
        ({"train": [0, 1, True]}, [0, 1], r"line 3: the label must be 0 or 1, not True \(`labels` may name others\)"),
        ({"train": [0, 1, "01"]}, {0: "a", 1: "b"}, r"line 3: the label must be 0 or 1, not '01'"),
    ],
)
def test_labels_that_cannot_be_learned_are_one_line(
    given: dict[str, list[Any]], chosen: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        downloaded(tmp_path, given, chosen)
    assert "\n" not in str(caught.value)
    assert not [*(tmp_path / "out").glob("*")]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        *((labels, "must be 2 to 128 different labels, not ") for labels in (["a"], ["pos", "pos\u200b"], {0: "a"})),
        ("negative", "must be `train`, a list of labels or a mapping"),
    ],
)
def test_a_list_or_mapping_that_names_no_classes_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Params.model_validate(params("sentiment", labels=labels))


def of_datasets(folder: Path, **names: list[str]) -> str:
    """A folder with these splits as Parquet files of `datasets`, with the names of their labels; returns its path."""
    folder.mkdir()
    for split, own in names.items():
        features = datasets.Features({"label": datasets.ClassLabel(names=own), "text": datasets.Value("string")})
        rows = [{"label": n % len(own), "text": f"{own[n % len(own)]} {split} {n}"} for n in range(12)]
        datasets.Dataset.from_list(rows, features=features).to_parquet(folder / f"{split}.parquet")
    return str(folder)


def test_every_file_has_its_own_names_of_labels(tmp_path: Path) -> None:
    """As of splits cast one by one, of which one lacks a class; also of added rows."""
    every = ["world", "sports", "science"]
    path = of_datasets(tmp_path / "in", train=every, validation=["science", "sports"], test=["sports", "world"])
    corpus = judge(tmp_path, path=path, added=of_datasets(tmp_path / "added", train=every[::-1]))
    assert read_json(corpus / LABELS) == sorted(every)
    for split in SPLITS:
        named = zip(labels_of(corpus, split), stored(corpus, split), strict=True)
        assert all(row["text"].startswith(name) for name, row in named)
    assert len(stored(corpus, "train")) == 24


def test_weights_of_other_labels_are_refused_before_anything_runs() -> None:
    content = fresh_profile("default")
    content["sentiment"]["download"] |= {"labels": ["a", "b"]}
    content["sentiment"]["train"] |= {"class_weights": {"a": 1.0, "c": 2.0}}
    given = stage_params(content, "sentiment", combinations.Params, where=Path("params.yaml"))
    with pytest.raises(ValueError, match="exactly the labels a, b"):
        combinations.check(open_task("sentiment"), given)


def test_balanced_weights_make_every_class_weigh_the_same() -> None:
    labels = np.array([0] * 6 + [1] * 3 + [2], dtype=np.int8)
    weights = class_weights("balanced", ("a", "b", "c"), labels, torch.device("cpu"))
    assert weights is not None
    assert np.allclose(weights.numpy() * np.bincount(labels), len(labels) / 3)
    with pytest.raises(UserError, match="must have exactly the labels a, b, not a"):
        class_weights({"a": 1.0}, ("a", "b"), labels, torch.device("cpu"))


def test_a_weight_counts_a_row_that_many_times() -> None:
    torch.manual_seed(1)
    logits, classes = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 2, 0])
    weights = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
    repeated = [row for row, number in enumerate(classes.tolist()) for _ in range(int(weights[number]))]
    total, nll = smoothed_cross_entropy(logits, classes, 0.1, weights)
    expected, _ = smoothed_cross_entropy(logits[repeated], classes[repeated], 0.1)
    assert torch.allclose(total, expected)
    assert torch.allclose(nll, smoothed_cross_entropy(logits, classes, 0.0)[1])
