"""Corpora as people have them: noise, other column names, nested rows, CSV, no splits, files that nobody needs."""

import gzip
import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pyarrow.parquet
import pytest

from tests.data.cases import json_lines, pairs, reviews, stored, write
from tests.data.test_download import judge, parallel, provenance, translate
from tests.stages import Said
from transformer.core.errors import UserError

NOISY = [*pairs(20), {"de": "leer", "en": " "}, {"de": "allein"}, *pairs(20, "Wort"), {"de": "", "en": "x"}]


def test_all_bad_rows_of_a_file_are_one_line(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in", train=NOISY)
    with pytest.raises(UserError) as caught:
        translate(tmp_path, path=path)
    message = str(caught.value)
    assert "\n" not in message
    for line, reason in ((21, "`en` is empty"), (22, "`en` is missing"), (43, "`de` is empty")):
        assert f"train.jsonl, line {line}: {reason}" in message
    assert "fix these 3 rows, set `bad_rows` to skip" in message


def test_more_than_ten_are_counted(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in", train=[*pairs(5), *[{"de": "x", "en": ""}] * 31])
    with pytest.raises(UserError, match=r"line 15: .*; and 21 more; fix these 31 rows"):
        translate(tmp_path, path=path)


def test_rows_that_are_filtered_do_not_hide_the_bad_ones(tmp_path: Path) -> None:
    """Ten are shown of each."""
    path = parallel(tmp_path / "in", train=[*pairs(1) * 15, {"de": "x", "en": ""}])
    with pytest.raises(UserError, match=r"^\S*train\.jsonl, line 16: `en` is empty; fix this row"):
        translate(tmp_path, path=path, deduplicate=True)


def test_bad_rows_are_skipped_and_counted_by_reason(tmp_path: Path) -> None:
    folder = Path(parallel(tmp_path / "in", train=NOISY))
    with (folder / "train.jsonl").open("ab") as stream:
        stream.write(b'{"de": "\xff"}\n\nno json\n')
    output = translate(tmp_path, path=str(folder), bad_rows="skip")
    assert stored(output, "train") == [*pairs(20), *pairs(20, "Wort")]
    counts = provenance(output)["left_out"]["train"]
    assert counts["`en` is empty"] == counts["`en` is missing"] == counts["`de` is empty"] == 1
    assert sum(counts.values()) == 6 and any("UTF-8" in reason for reason in counts)
    clean = translate(tmp_path / "clean", path=parallel(tmp_path / "other", train=[*pairs(20), *pairs(20, "Wort")]))
    assert provenance(clean)["content_sha256"] == provenance(output)["content_sha256"]
    assert "left_out" not in provenance(clean)


def test_labels_that_are_none_are_one_reason(tmp_path: Path) -> None:
    rows = [*reviews(40), *({"label": f"x{number}", "text": "So."} for number in range(5))]
    path = str(write(tmp_path / "in", {"train.jsonl": json_lines(rows), "test.jsonl": json_lines(reviews(6))}))
    counts = provenance(judge(tmp_path, path=path, bad_rows="skip", labels=[0, 1]))["left_out"]["train"]
    assert [*counts.values()] == [5]


def test_rows_that_are_filtered_are_named_by_their_place(tmp_path: Path) -> None:
    rows = [{"de": "a", "en": ""}, {"de": "ein " * 30, "en": "long"}, *pairs(3), *pairs(1)]
    settings = {"max_words": 20, "deduplicate": True, "bad_rows": "skip"}
    said = Said()
    translate(tmp_path, said, path=parallel(tmp_path / "in", train=rows), **settings)
    for expected in ("line 2: longer than max_words", "line 6: repeats an earlier row"):
        assert any(f"train.jsonl, {expected}" in line for line in said.lines)


def test_long_and_repeated_rows_are_left_out_of_train_alone(tmp_path: Path) -> None:
    long = {"de": "ein " * 30, "en": "long"}
    path = parallel(tmp_path / "in", train=[*pairs(9), long, *pairs(3)], test=[*pairs(2), *pairs(2), long])
    output = translate(tmp_path, path=path, max_words=20, deduplicate=True)
    assert stored(output, "train") == pairs(9)
    assert len(stored(output, "test")) == 5
    assert provenance(output)["left_out"] == {"train": {"longer than max_words": 1, "repeats an earlier row": 3}}


def test_other_names_of_columns(tmp_path: Path) -> None:
    rows = [{"source": row["de"], "target": {"text": row["en"]}, "id": 1} for row in pairs(9)]
    path = parallel(tmp_path / "in", train=rows, val=rows, test=rows)
    columns = {"de": "source", "en": "target.text"}
    assert stored(translate(tmp_path, path=path, columns=columns), "train") == pairs(9)
    with pytest.raises(UserError, match="`columns` names fr, which no row has: choose from de, en"):
        translate(tmp_path, path=path, columns={"fr": "source"})


def test_nested_rows_of_the_hub(tmp_path: Path) -> None:
    rows = [{"id": str(number), "translation": row} for number, row in enumerate(pairs(9))]
    path = parallel(tmp_path / "in", train=rows, val=rows, test=rows)
    assert stored(translate(tmp_path, path=path), "train") == pairs(9)


def test_a_name_within_another_column_is_not_taken_for_one_that_a_row_lacks(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [*pairs(9), {"de": "allein", "scores": {"en": "0.5"}}]
    path = parallel(tmp_path / "in", train=rows)
    with pytest.raises(UserError, match=r"train\.jsonl, line 10: `en` is missing"):
        translate(tmp_path, path=path)
    two = [{"a": row, "b": row} for row in pairs(9)]
    with pytest.raises(UserError, match="`de` is missing"):
        translate(tmp_path, path=parallel(tmp_path / "two", train=two))


def test_a_broken_line_of_csv_costs_its_own_row_alone(tmp_path: Path) -> None:
    content = b'label,text\n0,a\n1,"b\n\xff\n\xff c"\n\n0,d\n1,' + b"e" * 200_000 + b"\n"
    path = str(write(tmp_path / "in", {"train.csv": content, "val.csv": content, "test.csv": content}))
    output = judge(tmp_path, path=path, bad_rows="skip", quotes="multiline")
    assert [row["text"][:3] for row in stored(output, "train")] == ["a", "d", "eee"]
    assert sum(provenance(output)["left_out"]["train"].values()) == 2


def test_what_is_held_out_and_left_out_is_said(tmp_path: Path, said: list[str]) -> None:
    """Train is read several times then, and its bad rows are counted once."""
    path = str(write(tmp_path / "in", {"train.jsonl": json_lines([*pairs(100), {"de": "x", "en": ""}])}))
    found = provenance(translate(tmp_path, path=path, bad_rows="skip"))
    assert found["held_out"] == {"test": 0.2, "validation": 0.2}
    assert found["left_out"] == {"train": {"`en` is empty": 1}}
    assert "test: the corpus has no such split, so 0.2 of train is held out" in said
    assert said.count("train: 1 rows left out: `en` is empty") == 1
    assert "held_out" not in provenance(translate(tmp_path / "b", path=parallel(tmp_path / "whole")))


def test_nested_rows_of_parquet(tmp_path: Path) -> None:
    table = pyarrow.table({"id": ["1"] * 9, "translation": pairs(9)})
    for split in ("train", "validation", "test"):
        (tmp_path / "in").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(table, tmp_path / "in" / f"{split}.parquet")
    assert stored(translate(tmp_path, path=str(tmp_path / "in")), "train") == pairs(9)
    with pytest.raises(UserError, match=r"no column `fr` \(it has: id, translation\): name it in `columns`"):
        translate(tmp_path, path=str(tmp_path / "in"), languages=["de", "fr"])


def test_csv_with_quotes_and_line_ends(tmp_path: Path) -> None:
    rows = [{"label": number % 2, "text": f'He said "{number}",\nand left'} for number in range(40)]
    lines = [f'{row["label"]},"{str(row["text"]).replace(chr(34), chr(34) * 2)}"' for row in rows]
    content = ("stars,review\r\n" + "\r\n".join(lines) + "\r\n").encode()
    path = str(write(tmp_path / "in", {"train.csv": content, "test.csv.gz": content}))
    output = judge(tmp_path, path=path, columns={"label": "stars", "text": "review"}, quotes="multiline")
    assert stored(output, "test") == [
        {"label": row["label"], "text": str(row["text"]).replace("\n", " ")} for row in rows
    ]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = str(write(tmp_path / "in", {"train.csv": b"label,text,text\n1,a,b\n"}))
    with pytest.raises(UserError, match=r"train\.csv has two columns `text`: rename one"):
        judge(tmp_path, path=path)


def test_blocks_are_those_of_the_source_whatever_was_left_out(tmp_path: Path) -> None:
    """Runs of ten texts about one thing, of both labels: the first row is bad, and a test split is held out first."""
    rows = [
        {"label": (number + number // 10) % 2, "text": f"Film {number // 10} {('good', 'bad')[number % 2]} {number}"}
        for number in range(2000)
    ]
    lines = b"no json\n" + json_lines(rows).partition(b"\n")[2]
    path = str(write(tmp_path / "in", {"train.jsonl": lines}))
    output = judge(tmp_path, path=path, bad_rows="skip", validation_block=10)
    films = {
        split: {row["text"].split()[1] for row in stored(output, split)} for split in ("train", "validation", "test")
    }
    shared = [films["train"] & films[split] for split in ("validation", "test")]
    assert all(len(each) <= 3 for each in shared), "only where the bounds of two labels differ"
    assert all(len(films[split]) > 20 for split in films)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_of_another_separator(separator: str, tmp_path: Path) -> None:
    """As Excel writes it where the comma is decimal."""
    rows = [("label", "text"), ("1", '"a; b, c"'), ("0", '"d, e"')]
    content = "\ufeff".encode() + "".join(f"{separator.join(row)}\n" for row in rows).encode()
    path = str(write(tmp_path / "in", {"train.csv": content, "test.csv": content, "val.csv": content}))
    output = judge(tmp_path, path=path)
    assert stored(output, "test") == [{"label": 1, "text": "a; b, c"}, {"label": 0, "text": "d, e"}]


def test_files_of_opus_alone_are_enough(tmp_path: Path) -> None:
    rows = pairs(200)
    files = {f"Books.de-en.{side}": "".join(f"{row[side]}\n" for row in rows).encode() for side in ("de", "en")}
    output = translate(tmp_path, path=str(write(tmp_path / "in", files)))
    splits = {split: stored(output, split) for split in ("train", "validation", "test")}
    assert sorted(row["de"] for split in splits.values() for row in split) == sorted(row["de"] for row in rows)
    assert 20 <= len(splits["test"]) <= 60 and 15 <= len(splits["validation"]) <= 60
    assert splits == {split: stored(translate(tmp_path / "b", path=str(tmp_path / "in")), split) for split in splits}
    other = translate(tmp_path / "c", path=str(tmp_path / "in"), seed=2)
    assert stored(other, "test") != splits["test"]


def test_sentences_that_differ_in_case_punctuation_and_encoding_stay_together(tmp_path: Path) -> None:
    """An umlaut is one letter, or a letter and a mark after it."""
    others = [{"de": normalize("NFD", each["de"].upper()[:-1] + "!"), "en": each["en"]} for each in pairs(100)]
    rows = pairs(100) + others
    path = str(write(tmp_path / "in", {"train.jsonl": json_lines(rows)}))
    output = translate(tmp_path, path=path)
    splits = ("train", "validation", "test")
    found = [{normalize("NFC", row["de"]).casefold()[:-1] for row in stored(output, split)} for split in splits]
    assert len(set.union(*found)) == 100
    assert not found[0] & found[1] and not found[0] & found[2] and not found[1] & found[2]


@pytest.mark.parametrize("linked", [True, False])
def test_a_subfolder_whose_files_dvc_does_not_see_is_one_line(linked: bool, tmp_path: Path) -> None:
    """It would be hashed as empty, and a change of the corpus be up to date."""
    other = Path(parallel(tmp_path / "other"))
    (tmp_path / "in").mkdir()
    place = tmp_path / "in" / "data"
    if linked:
        place.symlink_to(other)
    else:
        other.rename(place)
        (place / ".dvc").mkdir()
    with pytest.raises(
        UserError, match=rf"^{place} is a .*, whose files DVC does not follow: name it as `path` itself"
    ):
        translate(tmp_path, path=str(tmp_path / "in"))
    (tmp_path / "link").symlink_to(other if linked else place)
    translate(tmp_path, path=str(tmp_path / "link"))


def test_what_is_ignored_is_said(tmp_path: Path, said: list[str]) -> None:
    path = Path(parallel(tmp_path / "in"))
    write(path, {"training.de": b"x\n", "README.md": b"x", "notes.txt.gz": gzip.compress(b"x"), ".hidden": b""})
    translate(tmp_path, path=str(path))
    assert [line for line in said if "ignored" in line] == [
        "ignored, since their names are of no layout: notes.txt.gz, training.de"
    ]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the stage says."""
    lines: list[str] = []

    def say(self: Any, line: str) -> None:
        lines.append(line)

    monkeypatch.setattr("transformer.core.observer.Observer.say", say)
    return lines


def test_provenance_is_json_of_plain_numbers(tmp_path: Path) -> None:
    output = translate(tmp_path, path=parallel(tmp_path / "in", train=NOISY), bad_rows="skip")
    assert json.loads((output / "provenance.json").read_text())["rows"]["train"] == 40


def test_training_rows_like_a_held_out_one_are_left_out(tmp_path: Path) -> None:
    """Each sentence has a twin with one more word; without this, a twin is held out and the other one trained on."""
    rows = [
        {"de": f"der {number} Hund von {word * 3} schläft im {number} Garten{more}", "en": f"{number} {word}{more}"}
        for number, word in enumerate("abcdefghijklmnopqrstuvwxyz" * 2)
        for more in ("", " heute")
    ]
    path = str(write(tmp_path / "in", {"train.jsonl": json_lines(rows)}))
    output = translate(tmp_path, path=path, near_duplicates="leave_out")

    def plain(split: str) -> set[str]:
        return {row["de"].removesuffix(" heute") for row in stored(output, split)}

    assert not plain("train") & (plain("validation") | plain("test"))
    left_out = provenance(output)["left_out"]["train"]["nearly equals a row held out"]
    assert left_out == len(rows) - sum(len(stored(output, split)) for split in ("train", "validation", "test")) > 5
    kept = translate(tmp_path, path=path, near_duplicates="keep")
    assert "left_out" not in provenance(kept)
    assert sum(len(stored(kept, split)) for split in ("train", "validation", "test")) == len(rows)


def test_where_all_rows_are_alike_the_message_says_what_to_do(tmp_path: Path) -> None:
    rows = [{"de": f"Der Hund schläft heute im großen Garten {number}", "en": "x"} for number in range(50)]
    path = str(write(tmp_path / "in", {"train.jsonl": json_lines(rows)}))
    with pytest.raises(UserError, match="every row of train nearly equals one that is held out of it: set `near_dup"):
        translate(tmp_path, path=path, near_duplicates="leave_out")


def test_pairs_of_unequal_length_are_left_out_of_train(tmp_path: Path) -> None:
    unequal = {"de": "a" * 50, "en": "b" * 10}
    path = parallel(tmp_path / "in", train=[*pairs(9), unequal], test=[*pairs(2), unequal])
    output = translate(tmp_path, path=path, max_ratio=4.0)
    assert stored(output, "train") == pairs(9)
    assert stored(output, "test")[-1] == unequal
    assert provenance(output)["left_out"] == {"train": {"sides too unequal for max_ratio": 1}}
    assert len(stored(translate(tmp_path, path=path, max_ratio=5.0), "train")) == 10
