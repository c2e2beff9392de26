"""`download.added`: rows from elsewhere join train, but for those that the model is judged by."""

from pathlib import Path
from typing import Any

import pytest

from tests.data.cases import (
    content,
    json_lines,
    judge,
    labelled,
    pairs,
    parallel,
    provenance,
    reviews,
    splits,
    stored,
    translate,
    write,
)
from transformer.core.errors import UserError


def further(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> str:
    return str(write(folder, {name: json_lines(rows)}))


def test_they_follow_those_of_train_and_provenance_names_them(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in")
    alone = translate(tmp_path / "alone", path=path)
    output = translate(tmp_path, path=path, added=further(tmp_path / "more", pairs(5, "Wort")))
    assert stored(output, "train") == [*pairs(9), *pairs(5, "Wort")]
    found = provenance(output)
    assert found["added"] == {"files": ["train.jsonl"]} and found["added_rows"] == 5
    assert found["content_sha256"] != provenance(alone)["content_sha256"]
    assert not {"added", "added_rows"} & provenance(alone).keys()


def test_their_columns_are_named_as_ours(tmp_path: Path) -> None:
    """Also as on the Hub."""
    theirs = [{"source": row["de"], "target": row["en"]} for row in pairs(9)]
    path, added = splits(tmp_path / "in", train=theirs, val=theirs, test=theirs), pairs(2, "Wort")
    nested = [{"id": str(number), "translation": row} for number, row in enumerate(added)]
    for name, rows in (("plain", added), ("nested", nested)):
        columns, more = {"de": "source", "en": "target"}, further(tmp_path / name, rows)
        assert stored(translate(tmp_path, path=path, columns=columns, added=more), "train") == [*pairs(9), *added]


@pytest.mark.parametrize("split", ["val", "test_other"])
def test_a_row_like_one_that_the_model_is_judged_by_is_left_out(split: str, tmp_path: Path) -> None:
    """One side is enough: a translation of a test sentence, say."""
    seen = {"de": "Die zwei alten Männer sitzen auf einer Bank im Park.", "en": "Two old men sit on a park bench."}
    near = [
        {"de": seen["de"].upper(), "en": "Something else."},
        {"de": "Etwas anderes.", "en": "Two old men sit on a park bank."},
    ]
    path = parallel(tmp_path / "in", **{split: [*pairs(3), seen]})
    output = translate(tmp_path, path=path, added=further(tmp_path / "more", [*near, *pairs(2, "Wort")]))
    assert stored(output, "train") == [*pairs(9), *pairs(2, "Wort")]
    assert provenance(output)["left_out"] == {"rows added": {"equals or nearly equals a row of validation or test": 2}}


def test_validation_is_held_out_of_the_corpus_alone(tmp_path: Path) -> None:
    """Neither what is held out nor what is left of train changes; repeats are known in each reading of train."""
    path = labelled(tmp_path / "in", train=[*reviews(100), *reviews(100)[:9]])
    alone = judge(tmp_path / "alone", path=path, deduplicate=True)
    like = {"label": 0, "text": stored(alone, "validation")[0]["text"]}
    more = [*reviews(100)[20:30], *reviews(10, "book"), *reviews(10, "book"), like]
    output = judge(tmp_path, path=path, deduplicate=True, added=further(tmp_path / "more", more))
    assert stored(output, "train") == [*stored(alone, "train"), *reviews(10, "book")]
    assert content(output)["validation.jsonl"] == content(alone)["validation.jsonl"]
    left = provenance(output)["left_out"]
    assert left["train"] == {"repeats an earlier row": 9} and left["rows added"] == {"repeats an earlier row": 21}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test.jsonl", r"more has the splits test, but rows to add .* leave only `train` in it"),
        ("words.txt", r"the rows to add \(`added`\) cannot be read: nothing to read in .*more"),
        ("train.jsonl", r"rows added: every row equals or nearly equals .* set `added` to data/local/none"),
    ],
)
def test_a_folder_that_adds_nothing(name: str, message: str, tmp_path: Path) -> None:
    path, added = parallel(tmp_path / "in", val=pairs(3)), further(tmp_path / "more", pairs(3), name)
    with pytest.raises(UserError, match=message):
        translate(tmp_path, path=path, added=added)
