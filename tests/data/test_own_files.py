"""Corpora as people have them: noise, other column names, nested rows, no splits, files that nobody needs."""

import shutil
from pathlib import Path
from unicodedata import normalize

import pyarrow.parquet
import pytest
from dvc.repo import Repo

from tests.data.cases import json_lines, pairs, parallel, provenance, reviews, splits, stored, translate, write
from tests.kit import ROOT
from tests.stages import Said
from transformer.core.errors import UserError
from transformer.data.files import read_folder
from transformer.data.layouts import Columns

SPLITS = ("train", "validation", "test")
NOISY = [*pairs(20), {"de": "leer", "en": " "}, {"de": "allein"}, *pairs(20, "Wort"), {"de": "", "en": "x"}]


def test_all_bad_rows_of_a_file_are_one_line(tmp_path: Path) -> None:
    """Ten of them are shown, however many rows filters leave out before."""
    path = parallel(tmp_path / "in", train=[*pairs(1) * 15, *NOISY, *[{"de": "x", "en": ""}] * 31])
    with pytest.raises(UserError, match="; and 24 more; fix these 34 rows, set `bad_rows` to skip") as caught:
        translate(tmp_path, path=path, deduplicate=True)
    for line, reason in ((36, "`en` is empty"), (37, "`en` is missing"), (58, "`de` is empty")):
        assert f"train.jsonl, line {line}: {reason}" in str(caught.value)
    assert "\n" not in str(caught.value) and "line 66" not in str(caught.value)


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


def test_filters_leave_rows_out_of_train_alone_and_say_where(tmp_path: Path) -> None:
    long, unequal, said = {"de": "ein " * 30, "en": "long " * 20}, {"de": "a" * 50, "en": "b" * 10}, Said()
    rows = [{"de": "a", "en": ""}, long, unequal, *pairs(9), *pairs(3)]
    path = parallel(tmp_path / "in", train=rows, test=[*pairs(2), *pairs(2), long, unequal])
    settings = {"max_words": 20, "deduplicate": True, "max_ratio": 4.0, "bad_rows": "skip"}
    output = translate(tmp_path, said, path=path, **settings)
    assert stored(output, "train") == pairs(9)
    assert stored(output, "test")[-1] == unequal and len(stored(output, "test")) == 6
    found = {"longer than max_words": 1, "repeats an earlier row": 3, "sides too unequal for max_ratio": 1}
    assert provenance(output)["left_out"] == {"train": {"`en` is empty": 1, **found}}
    for expected in ("line 2: longer than max_words", "line 3: sides too", "line 13: repeats an earlier row"):
        assert any(f"train.jsonl, {expected}" in line for line in said.lines)
    assert len(stored(translate(tmp_path, path=path, max_ratio=5.0, bad_rows="skip"), "train")) == 14


def test_other_names_of_columns(tmp_path: Path) -> None:
    rows = [{"source": row["de"], "target": {"text": row["en"]}, "id": 1} for row in pairs(9)]
    path = splits(tmp_path / "in", train=rows, val=rows, test=rows)
    columns = {"de": "source", "en": "target.text"}
    assert stored(translate(tmp_path, path=path, columns=columns), "train") == pairs(9)
    with pytest.raises(UserError, match="`columns` names fr, which no row has: choose from de, en"):
        translate(tmp_path, path=path, columns={"fr": "source"})


def test_nested_rows_of_the_hub(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([{"id": str(number), "translation": row} for number, row in enumerate(pairs(9))])
    for split in SPLITS:
        pyarrow.parquet.write_table(table, tmp_path / f"{split}.parquet")
    assert stored(translate(tmp_path / "b", path=str(tmp_path)), "train") == pairs(9)
    with pytest.raises(UserError, match=r"no column `fr` \(it has: id, translation\): name it in `columns`"):
        translate(tmp_path / "b", path=str(tmp_path), languages=["de", "fr"])


def test_a_name_within_another_column_is_not_taken_for_one_that_a_row_lacks(tmp_path: Path) -> None:
    path = parallel(tmp_path / "in", train=[*pairs(9), {"de": "allein", "scores": {"en": "0.5"}}])
    with pytest.raises(UserError, match=r"train\.jsonl, line 10: `en` is missing"):
        translate(tmp_path, path=path)


def test_what_is_held_out_left_out_and_ignored_is_said_once(tmp_path: Path) -> None:
    """Train is read several times then."""
    said, path = Said(), splits(tmp_path / "in", train=[*pairs(100), {"de": "x", "en": ""}])
    write(Path(path), dict.fromkeys(("training.de", "README.md", "notes.txt.gz", ".hidden"), b"x"))
    found = provenance(translate(tmp_path, said, path=path, bad_rows="skip"))
    assert found["held_out"] == {"test": 0.2, "validation": 0.2}
    assert found["left_out"] == {"train": {"`en` is empty": 1}}
    for line in (
        "ignored, since their names are of no layout: notes.txt.gz, training.de",
        "test: the corpus has no such split, so 0.2 of train is held out",
        "train: 1 rows left out: `en` is empty",
    ):
        assert said.lines.count(line) == 1


def test_sentences_that_differ_in_case_punctuation_and_encoding_stay_together(tmp_path: Path) -> None:
    """An umlaut is one letter, or a letter and a mark after it."""
    others = [{"de": normalize("NFD", each["de"].upper()[:-1] + "!"), "en": each["en"]} for each in pairs(100)]
    output = translate(tmp_path, path=splits(tmp_path / "in", train=pairs(100) + others))
    found = [{normalize("NFC", row["de"]).casefold()[:-1] for row in stored(output, split)} for split in SPLITS]
    assert len(set.union(*found)) == 100
    assert not found[0] & found[1] and not found[0] & found[2] and not found[1] & found[2]


def test_training_rows_like_a_held_out_one_are_left_out(tmp_path: Path) -> None:
    """Each sentence has a twin with one more word; without this, a twin is held out and the other one trained on."""
    rows = [
        {"de": f"der {number} Hund von {word * 3} schläft im {number} Garten{more}", "en": f"{number} {word}{more}"}
        for number, word in enumerate("abcdefghijklmnopqrstuvwxyz" * 2)
        for more in ("", " heute")
    ]
    path = splits(tmp_path / "in", train=rows)
    output = translate(tmp_path, path=path, near_duplicates="leave_out")
    train, *held_out = ({row["de"].removesuffix(" heute") for row in stored(output, split)} for split in SPLITS)
    assert not train & set.union(*held_out)
    left_out = provenance(output)["left_out"]["train"]["nearly equals a row held out"]
    assert left_out == len(rows) - sum(len(stored(output, split)) for split in SPLITS) > 5
    alike = [{"de": f"Der Hund schläft heute im großen Garten {number}", "en": "x"} for number in range(50)]
    with pytest.raises(UserError, match="train: every row nearly equals a row held out: set `near_duplicates` to keep"):
        translate(tmp_path, path=splits(tmp_path / "in", train=alike), near_duplicates="leave_out")


@pytest.mark.parametrize(("text", "mark"), [("it &apos;s", "&apos;"), ("un@@ told", "@@"), ("a &amp; b", None)])
def test_pairs_that_were_tokenized_or_escaped_before_are_told(text: str, mark: str | None, tmp_path: Path) -> None:
    """One row alone proves nothing."""
    rows, said = pairs(200), Said()
    for row in rows if mark else rows[:2]:
        row["en"] += f" {text}"
    translate(tmp_path, said, path=splits(tmp_path / "in", train=rows))
    found = [line for line in said.lines if "tokenized" in line]
    assert len(found) == bool(mark)
    assert not mark or f"rows were tokenized or escaped before ({mark}): answers will look like that" in found[0]


def test_a_subfolder_whose_files_dvc_does_not_see_is_one_line(tmp_path: Path) -> None:
    """It would be hashed as empty, and a change of the corpus be up to date."""
    other = Path(parallel(tmp_path / "other"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "data").symlink_to(other)
    with pytest.raises(UserError, match=r"in/data is a .*, whose files DVC does not follow: name it as `path` itself"):
        translate(tmp_path, path=str(tmp_path / "in"))
    translate(tmp_path, path=str(tmp_path / "in" / "data"))


LEFT = [".~lock.train.csv#", "~$Books.de-en.de", ".DS_Store", "._train.jsonl", "Thumbs.db", "train.jsonl~"]


def test_files_that_programs_leave_are_not_read_and_change_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = write(Path("corpus"), {"train.jsonl": json_lines(reviews(40)), **dict.fromkeys(LEFT, b"x")})
    found = read_folder(corpus, columns=Columns({name: name for name in ("de", "en")}))
    assert found.origin["files"] == {"train": ["train.jsonl"]} and not found.ignored
    shutil.copy(ROOT / ".dvcignore", ".dvcignore")
    with Repo.init(no_scm=True) as repo:
        assert all(repo.dvcignore.is_ignored_file(str(corpus / name)) for name in LEFT)
        assert not repo.dvcignore.is_ignored_file(str(corpus / "train.jsonl"))
