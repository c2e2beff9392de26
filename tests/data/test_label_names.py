"""The names of labels are the corpus's own, or those that the user gives."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.data.cases import json_lines, sentiment, write
from tests.kit import fresh_profile
from tests.training.small import run_stage
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import LABELS, open_task, with_labels
from transformer.families.classifier.download import Params, label_name


def downloaded(tmp_path: Path, given: list[Any], labels: Any = "train") -> Path:
    """The corpus of twelve rows for each of the labels in every split."""
    rows = [{"label": label, "text": f"text {number} of {label!r}"} for number, label in enumerate(given * 12)]
    path = write(tmp_path / "in", dict.fromkeys(("train.jsonl", "validation.jsonl", "test.jsonl"), json_lines(rows)))
    content = fresh_profile("smoke")
    content["sentiment"]["download"] |= {"source": "files", "path": str(path), "labels": labels}
    content["sentiment"]["download"] |= {"near_duplicates": "keep"}
    run_stage(content, "sentiment", "download", Paths(data=tmp_path, models=tmp_path, reports=tmp_path), Observer())
    return tmp_path / "corpus"


def classes(corpus: Path) -> tuple[str, ...]:
    """The names that later stages show."""
    return with_labels(open_task("sentiment"), corpus).classes


SAME = {
    "pos": ["pos", "pos ", "\ufeffpos", "pos\u200b", "p\u00ados", "pos\u200e", "p\u200dos", "pos\x7f"],
    "very good": ["very good", "very\u00a0good", "very  good", "very\u3000good\u2060"],
    "café": ["café", "cafe\u0301", "cafe\u200b\u0301"],
    "می\u200cخواهم": ["می\u200cخواهم", "\u200cمی\u200cخواهم\u200c"],
    "👨\u200d👩": ["👨\u200d👩", "👨\u200d👩\ufe0f"],
}


@pytest.mark.parametrize("name", SAME)
def test_labels_that_look_the_same_are_one_class(name: str, tmp_path: Path) -> None:
    assert classes(downloaded(tmp_path, [*SAME[name], "other"])) == tuple(sorted((name, "other"), key=str.casefold))


def test_a_joiner_that_shapes_its_letters_tells_labels_apart() -> None:
    assert label_name("می\u200cخواهم") != label_name("میخواهم")


def test_numbers_are_not_the_tasks_classes(tmp_path: Path) -> None:
    """0 may be spam as well as negative."""
    corpus = downloaded(tmp_path, [1, 0])
    assert classes(corpus) == ("0", "1") != open_task("sentiment").classes
    assert read_json(corpus / "provenance.json")["labels"]["test"] == {"0": 12, "1": 12}


@pytest.mark.parametrize(
    ("given", "labels", "names"),
    [
        ([1, 0], {0: "negative", 1: "positive"}, ("negative", "positive")),
        ([1, 0], {1: "ham", 0: "spam"}, ("ham", "spam")),
        (["neg", "pos", 0.0, "1"], {"neg": "no", "pos": "yes", 0: "no", 1: "yes"}, ("no", "yes")),
        ([1, 2, 3], {1: "bad", 2: "bad\u200b", 3: "good"}, ("bad", "good")),
    ],
)
def test_a_mapping_names_labels_and_joins_them(
    given: list[Any], labels: dict[Any, str], names: tuple[str, ...], tmp_path: Path
) -> None:
    corpus = downloaded(tmp_path, given, labels)
    assert classes(corpus) == names
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = [names.index(str(label_name({label_name(k): v for k, v in labels.items()}[label_name(g)]))) for g in given]
    assert [row["label"] for row in rows] == wanted * 12


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({0: "a"}, "must be 2 to 128 different labels"),
        ({0: "a", 1: "a\u200b"}, "must be 2 to 128 different labels"),
        ({"0": "a", 0: "b"}, "must be 2 to 128 different labels"),
        ({0: "a", 1: None}, "must be 2 to 128 different labels"),
        (["pos", "pos\u200b"], "must be 2 to 128 different labels"),
        (None, "must be `train`, a list of labels or a mapping of labels to names, not None"),
    ],
)
def test_a_mapping_that_names_no_classes_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Params.model_validate(sentiment(labels=labels))


def test_a_label_that_a_mapping_lacks_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 3: the label must be 0 or 1, not 2 \(`labels` may name others\)"):
        downloaded(tmp_path, [0, 1, 2], {0: "negative", 1: "positive"})


def test_the_sample_names_its_labels(tmp_path: Path) -> None:
    paths = Paths(data=tmp_path, models=tmp_path, reports=tmp_path)
    run_stage(fresh_profile("smoke"), "sentiment", "download", paths, Observer())
    assert [*read_json(tmp_path / "corpus" / "provenance.json")["labels"]["train"]] == ["negative", "positive"]
    assert not (tmp_path / "corpus" / LABELS).exists()
