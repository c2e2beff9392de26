"""`download.added`: rows from elsewhere join train, but for those that the model is judged by."""

from pathlib import Path
from typing import Any

import pytest

from tests.data.cases import json_lines, pairs, reviews, stored, write
from tests.data.test_download import content, judge, labelled, parallel, provenance, translate
from transformer.core.errors import UserError


def further(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> str:
    return str(write(folder, {name: json_lines(rows)}))


def test_they_follow_those_of_train_and_provenance_names_them(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in")
    alone = translate(tmp_path / "alone", path=path)
    output = translate(tmp_path, path=path, added=further(tmp_path / "more", pairs(5, "Wort")))
    assert stored(output, "train") == [*pairs(9), *pairs(5, "Wort")]
    for split in ("validation.jsonl", "test.jsonl"):
        assert content(output)[split] == content(alone)[split]
    found = provenance(output)
    assert found["added"] == {"files": ["train.jsonl"]} and found["added_rows"] == 5
    assert found["rows"]["train"] == 14
    assert found["content_sha256"] != provenance(alone)["content_sha256"]
    assert not {"added", "added_rows"} & provenance(alone).keys()


def test_parallel_texts_as_translate_prints_them(tmp_path: Path) -> None:
    files = {"train.de": b"Ein Wort.\nEin Satz.\n", "train.en": b"A word.\nA sentence.\n"}
    path = parallel(tmp_path / "in")
    output = translate(
        tmp_path, path=path, columns={"de": "de", "en": "en"}, added=str(write(tmp_path / "more", files))
    )
    assert stored(output, "train")[9:] == [
        {"de": "Ein Wort.", "en": "A word."},
        {"de": "Ein Satz.", "en": "A sentence."},
    ]


def test_their_columns_are_named_as_ours(tmp_path: Path) -> None:
    theirs = [{"source": row["de"], "target": row["en"]} for row in pairs(9)]
    path = parallel(tmp_path / "in", train=theirs, val=theirs, test=theirs)
    output = translate(
        tmp_path,
        path=path,
        columns={"de": "source", "en": "target"},
        added=further(tmp_path / "more", pairs(2, "Wort")),
    )
    assert stored(output, "train") == [*pairs(9), *pairs(2, "Wort")]


@pytest.mark.parametrize("split", ["val", "test", "test_other"])
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


def test_rows_as_on_the_hub(tmp_path: Path) -> None:
    nested = [{"id": str(number), "translation": row} for number, row in enumerate(pairs(2, "Wort"))]
    output = translate(tmp_path, path=parallel(tmp_path / "in"), added=further(tmp_path / "more", nested))
    assert stored(output, "train") == [*pairs(9), *pairs(2, "Wort")]


def test_repeats_are_known_also_where_validation_is_held_out_of_train(tmp_path: Path) -> None:
    """Every reading of train begins anew; rows that it has held out count as well."""
    path = labelled(tmp_path / "in", train=[*reviews(100), *reviews(100)[:9]])
    alone = judge(tmp_path / "alone", path=path, deduplicate=True)
    more = [*reviews(100)[20:30], *reviews(10, "book"), *reviews(10, "book")]
    output = judge(tmp_path, path=path, deduplicate=True, added=further(tmp_path / "more", more))
    assert stored(output, "train") == [*stored(alone, "train"), *reviews(10, "book")]
    left = provenance(output)["left_out"]
    assert left["train"] == {"repeats an earlier row": 9} and left["rows added"] == {"repeats an earlier row": 20}


def test_validation_is_held_out_of_the_corpus_alone(tmp_path: Path) -> None:
    """Neither what is held out nor what is left of train changes."""
    path = labelled(tmp_path / "in")
    alone = judge(tmp_path / "alone", path=path)
    kept, held_out = stored(alone, "train"), stored(alone, "validation")
    more = [*reviews(10, "book"), {"label": 0, "text": held_out[0]["text"]}]
    output = judge(tmp_path, path=path, added=further(tmp_path / "more", more))
    assert stored(output, "train") == [*kept, *reviews(10, "book")]
    assert content(output)["validation.jsonl"] == content(alone)["validation.jsonl"]
    assert provenance(output)["labels"]["train"] == {
        name: count + 5 for name, count in provenance(alone)["labels"]["train"].items()
    }


def test_rows_that_repeat_one_of_train_or_are_too_long_or_bad(tmp_path: Path) -> None:
    rows = [*pairs(7)[4:], *pairs(2, "Wort"), *pairs(2, "Wort"), {"de": "ein " * 30, "en": "long"}]
    path = parallel(tmp_path / "in")
    settings: dict[str, Any] = {"path": path, "added": further(tmp_path / "more", rows)}
    output = translate(tmp_path, **settings, deduplicate=True, max_words=20)
    assert stored(output, "train") == [*pairs(9), *pairs(2, "Wort")]
    assert provenance(output)["left_out"] == {"rows added": {"longer than max_words": 1, "repeats an earlier row": 5}}
    assert len(stored(translate(tmp_path, **settings), "train")) == 9 + len(rows)
    settings["added"] = further(tmp_path / "bad", [*pairs(1, "Wort"), {"de": "x", "en": ""}])
    with pytest.raises(UserError, match=r"bad/train\.jsonl, line 2: `en` is empty"):
        translate(tmp_path, **settings)
    assert stored(translate(tmp_path, **settings, bad_rows="skip"), "train") == [*pairs(9), *pairs(1, "Wort")]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("test.jsonl", pairs(3, "Wort"), r"more has the splits test, but rows to add .* leave only `train` in it"),
        ("words.txt", pairs(3), r"the rows to add \(`added`\) cannot be read: nothing to read in .*more"),
        ("train.jsonl", pairs(3), r"every added row equals or nearly equals .* set `added` to data/local/none"),
    ],
)
def test_a_folder_that_adds_nothing(name: str, rows: list[dict[str, str]], message: str, tmp_path: Path) -> None:
    path = parallel(tmp_path / "in", val=pairs(3))
    with pytest.raises(UserError, match=message) as caught:
        translate(tmp_path, path=path, added=further(tmp_path / "more", rows, name))
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the rows to add \(`added`\) cannot be read: the folder .*nowhere is missing"):
        translate(tmp_path, path=parallel(tmp_path / "in"), added=str(tmp_path / "nowhere"))
